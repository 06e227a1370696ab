from typing import Any, Dict, List, Optional, Sequence, Tuple

version: str

def report(
    code: str, message: str, hint: str, place: Optional[Tuple[str, int, int, str]], notes: Sequence[str]
) -> str: ...
def canonical(spec: str, file: str) -> str: ...
def automatic_device() -> str: ...
def fits_decode_rows(q_len: int, num_q_heads: int, num_kv_heads: int) -> bool: ...
def has_few_q_tiles(batch: int, num_q_heads: int, q_len: int, kv_len: int, device: str) -> bool: ...
def render(spec: str, file: str, target: str) -> str: ...
def explain(spec: str, file: str, target: str) -> str: ...
def check(
    spec: str,
    file: str,
    q: Any,
    k: Any,
    v: Any,
    buffers: Dict[str, Any],
    scalars: Dict[str, float],
    device: str,
    scale: Optional[float],
) -> str: ...
def judge_gradients(
    spec: str,
    file: str,
    q: Any,
    k: Any,
    v: Any,
    buffers: Dict[str, Any],
    scalars: Dict[str, float],
    scale: Optional[float],
    dout: Any,
    dlse: Any,
    gradients: Dict[str, Any],
) -> str: ...
def precompile(manifest: str, targets: List[str], bundle: Optional[str]) -> int: ...
def jax_handler(platform: str, run: str) -> Any: ...

class Bindings: ...

class Plan:
    def report(self) -> str: ...

class BlockMask:
    @property
    def batch(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def q_blocks(self) -> int: ...
    @property
    def kv_blocks(self) -> int: ...
    @property
    def block(self) -> Tuple[int, int]: ...
    @property
    def partial_tiles(self) -> int: ...
    @property
    def full_tiles(self) -> int: ...
    @property
    def empty_tiles(self) -> int: ...
    @property
    def density(self) -> float: ...
    @property
    def path(self) -> str: ...
    def tiles(self) -> bytes: ...
    def flex_lists(self) -> Tuple[bytes, bytes, bytes, bytes]: ...
    def slice_rows(self, first: int, rows: int, kv_len: Optional[int]) -> BlockMask: ...

class Attention:
    def __init__(
        self,
        spec: str,
        file: str,
        device: str,
        takes_block_mask: bool = False,
        masks_only: bool = False,
        positions: bool = False,
        merge: bool = False,
        append: bool = False,
        decode: bool = False,
        quantise: bool = False,
    ) -> None: ...
    @property
    def spec(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def target(self) -> str: ...
    def builds(self) -> List[Dict[str, Any]]: ...
    def bind(self, buffers: Dict[str, Any], scalars: Dict[str, float], owned: bool = True) -> Bindings: ...
    def backward(
        self,
        inputs: Dict[str, Any],
        gradients: Dict[str, Any],
        mask: Optional[BlockMask],
        plan: Optional[Plan],
        bindings: Optional[Bindings],
        scale: Optional[float],
        q_offset: int,
        kv_offset: int,
        stream: int,
        workspace: Any,
        deterministic: bool,
    ) -> None: ...
    def backward_workspace_size(
        self,
        batch: int,
        num_q_heads: int,
        num_kv_heads: int,
        q_len: int,
        kv_len: int,
        bindings: Optional[Bindings],
        deterministic: bool,
    ) -> int: ...
    def packed_backward_workspace_size(
        self, sizes: Dict[str, int], bindings: Optional[Bindings], deterministic: bool
    ) -> int: ...
    def merge(self, outs: Sequence[Any], lses: Sequence[Any], out: Any, lse: Any, stream: int) -> None: ...
    def append(
        self,
        k_new: Any,
        v_new: Any,
        k_pool: Any,
        v_pool: Any,
        slots: Any,
        plan: Optional[Plan],
        bindings: Optional[Bindings],
        stream: int,
    ) -> None: ...
    def quantise(
        self,
        array: Any,
        out: Any,
        operand: str,
        plan: Optional[Plan],
        sizes: Sequence[int],
        bindings: Optional[Bindings],
        stream: int,
    ) -> None: ...
    def forward(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        mask: Optional[BlockMask],
        plan: Optional[Plan],
        bindings: Optional[Bindings],
        scale: Optional[float],
        q_offset: int,
        kv_offset: int,
        stream: int,
        k_new: Any,
        v_new: Any,
        workspace: Any,
        max_scores: Any = None,
        weights: Any = None,
    ) -> None: ...
    def dense_workspace_size(
        self, batch: int, num_q_heads: int, num_kv_heads: int, q_len: int, kv_len: int
    ) -> int: ...
    def block_mask(
        self,
        batch: int,
        num_q_heads: int,
        num_kv_heads: int,
        q_len: int,
        kv_len: int,
        q_offset: int,
        kv_offset: int,
        bindings: Optional[Bindings],
        capacity: Optional[int],
        stream: int,
    ) -> BlockMask: ...
    def mask_from_flex(
        self,
        batch: int,
        num_q_heads: int,
        num_kv_heads: int,
        q_len: int,
        kv_len: int,
        bindings: Optional[Bindings],
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any,
        full_kv_indices: Any,
    ) -> BlockMask: ...
    def workspace_size(self, sizes: Dict[str, int]) -> int: ...
    def plan(
        self,
        sizes: Dict[str, int],
        arrays: Dict[str, Any],
        bindings: Optional[Bindings],
        workspace: Any,
        stream: int,
        count_absent: bool = False,
    ) -> Plan: ...
    def rebuild_plan(self, plan: Plan, bindings: Optional[Bindings], stream: int) -> None: ...

class Communicator:
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...

def transport_communicator(transport: Any) -> Communicator: ...
def device_name(name: str) -> str: ...
def nccl_id() -> bytes: ...
def nccl_communicator(id: Optional[bytes], rank: int, size: int, device: str, timeout_ms: int) -> Communicator: ...

class ContextPlan:
    @property
    def sharding(self) -> str: ...
    @property
    def shards(self) -> List[Tuple[int, int, int, int]]: ...
    @property
    def q_rows(self) -> int: ...
    @property
    def kv_rows(self) -> int: ...
    @property
    def traffic(self) -> Dict[str, Any]: ...

class ContextParallel:
    def __init__(self, spec: str, file: str, device: str, communicator: Communicator) -> None: ...
    @property
    def spec(self) -> str: ...
    @property
    def device(self) -> str: ...
    def bind(self, whole: Sequence[int], buffers: Dict[str, Any], scalars: Dict[str, float]) -> Bindings: ...
    def plan(
        self,
        whole: Sequence[int],
        bindings: Optional[Bindings],
        sharding: str,
        q_lengths: Sequence[int],
        kv_lengths: Sequence[int],
        stream: int,
    ) -> ContextPlan: ...
    def bind_packed(
        self, whole: Sequence[Sequence[int]], buffers: Dict[str, Any], scalars: Dict[str, float]
    ) -> Bindings: ...
    def plan_packed(
        self,
        whole: Sequence[Sequence[int]],
        bindings: Optional[Bindings],
        sharding: str,
        q_lengths: Sequence[int],
        kv_lengths: Sequence[int],
        stream: int,
    ) -> ContextPlan: ...
    def workspace_size(self, plan: ContextPlan, backward: bool, deterministic: bool) -> int: ...
    def forward(
        self,
        plan: ContextPlan,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        bindings: Optional[Bindings],
        scale: Optional[float],
        stream: int,
        workspace: Any,
    ) -> None: ...
    def backward(
        self,
        plan: ContextPlan,
        inputs: Dict[str, Any],
        gradients: Dict[str, Any],
        bindings: Optional[Bindings],
        scale: Optional[float],
        stream: int,
        workspace: Any,
        deterministic: bool,
    ) -> None: ...
    def wait(self, stream: int) -> None: ...
