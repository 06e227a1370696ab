"""Learns the slopes of ALiBi and a soft cap from a teacher's outputs: python examples/torch/train.py"""

import torch

import tilewright as tw


class Attention(torch.nn.Module):
    """Self-attention whose slopes and cap are parameters."""

    def __init__(self, heads, slope, cap):
        super().__init__()
        self.slopes = torch.nn.Parameter(torch.full((heads,), slope))
        self.cap = torch.nn.Parameter(torch.tensor(cap))

    def forward(self, q, k, v, mask):
        def score_mod(score, b, h, q_idx, kv_idx):
            return self.cap * torch.tanh(score / self.cap) + self.slopes[h] * (
                kv_idx - q_idx
            )

        return tw.flex_attention(q, k, v, score_mod, mask)


def causal_documents(documents):
    return lambda b, h, q_idx, kv_idx: (
        (q_idx >= kv_idx) & (documents[q_idx] == documents[kv_idx])
    )


def train(steps=100, heads=4, length=128):
    """The losses of all steps."""
    torch.manual_seed(0)
    mask = tw.create_block_mask(
        causal_documents(torch.arange(length) // 48), None, None, length, length
    )
    teacher, student = Attention(heads, 0.2, 2.0), Attention(heads, 0.02, 5.0)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        q, k, v = (torch.randn(2, heads, length, 32) for _ in range(3))
        with torch.no_grad():
            wanted = teacher(q, k, v, mask)
        loss = torch.nn.functional.mse_loss(student(q, k, v, mask), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, student


if __name__ == "__main__":
    losses, student = train()
    print(f"loss {losses[0]:.2e} -> {losses[-1]:.2e}")
    print(
        "slopes",
        [round(x, 3) for x in student.slopes.tolist()],
        "cap",
        round(student.cap.item(), 2),
    )
