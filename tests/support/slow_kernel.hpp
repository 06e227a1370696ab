#pragma once

namespace tilewright::test {

/// In place of cuda/kernels/portable_forward.cu.jinja: compiles for sm_90a, and ptxas says C7508
/// (setmaxnreg without
/// __launch_bounds__ is ignored) and C7511 (sums are read before their wgmma has ended).
inline constexpr const char* kSlowKernel = R"(
extern "C" __global__ void tilewright_forward(float* out, unsigned long long a,
                                              unsigned long long b) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
  float sums[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
        "{ %0, %1, %2, %3 }, %4, %5, accumulate, 1, 1, 0, 0;\n}"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    sums[i] *= 2;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = sums[i];
}
)";

}  // namespace tilewright::test
