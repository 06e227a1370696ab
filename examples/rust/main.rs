//! Causal attention from Rust over libtilewright.so.1, with std alone.
use std::ffi::{c_void, CStr, CString};
use std::marker::PhantomData;
use std::{fmt, mem, ptr};

/// What this program uses of tilewright.h. A struct that begins with struct_size may end where the program's needs end.
#[allow(non_camel_case_types)]
mod c {
    use std::{ffi::c_void, os::raw::c_char};

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct tw_tensor {
        data: *mut c_void,
        shape: [i64; 5],
        strides: [i64; 5],
        rank: i32,
        dtype: i32,
        pub device_type: i32,
        device_id: i32,
    }
    pub const TW_F32: i32 = 0;
    pub const TW_CPU: i32 = 1;

    macro_rules! sized {
        ($($name:ident { $($field:ident: $type:ty),* })*) => {
            $(#[repr(C)] pub struct $name { pub struct_size: usize, $(pub $field: $type),* })*
        };
    }
    sized! {
        tw_options { device: *const c_char }
        tw_shape { batch: i64, num_q_heads: i64, num_kv_heads: i64, q_len: i64, kv_len: i64 }
        tw_mask_info {
            batch: i64, heads: i64, q_blocks: i64, kv_blocks: i64, block: [i64; 2], partial_tiles: i64, full_tiles: i64,
            empty_tiles: i64, tiles_evaluated: i64, bytes: i64, density: f64
        }
        tw_call { q: tw_tensor, k: tw_tensor, v: tw_tensor, out: tw_tensor, lse: tw_tensor, mask: *const c_void }
    }

    #[link(name = "tilewright")]
    extern "C" {
        pub fn tw_attention_create(spec: *const c_char, options: *const tw_options, attention: *mut *mut c_void,
                                   error: *mut *mut c_void) -> i32;
        pub fn tw_attention_destroy(attention: *mut c_void);
        pub fn tw_mask_create(attention: *const c_void, shape: *const tw_shape, bindings: *const c_void,
                              options: *const c_void, mask: *mut *mut c_void, error: *mut *mut c_void) -> i32;
        pub fn tw_mask_describe(mask: *const c_void, info: *mut tw_mask_info, error: *mut *mut c_void) -> i32;
        pub fn tw_mask_destroy(mask: *mut c_void);
        pub fn tw_forward(attention: *const c_void, call: *const tw_call, error: *mut *mut c_void) -> i32;
        pub fn tw_tensor_contiguous(data: *mut c_void, dtype: i32, rank: i32, shape: *const i64) -> tw_tensor;
        pub fn tw_error_report(error: *const c_void) -> *const c_char;
        pub fn tw_error_destroy(error: *mut c_void);
    }
}

/// A status (tw_status) and the report, with place and caret.
struct Error(i32, String);

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result { write!(out, "status {}\n{}", self.0, self.1) }
}

/// Runs a function of the library and takes its error.
fn checked(function: impl FnOnce(*mut *mut c_void) -> i32) -> Result<(), Error> {
    let mut error = ptr::null_mut();
    let status = function(&mut error);
    if status == 0 { return Ok(()); }
    let report = unsafe { CStr::from_ptr(c::tw_error_report(error)) }.to_string_lossy().into_owned();
    unsafe { c::tw_error_destroy(error) };
    Err(Error(status, report))
}

/// A dense f32 tensor [batch, heads, rows, head_dim] in memory that it borrows: &[f32] to read, &mut [f32] to write.
struct Tensor<T>(c::tw_tensor, PhantomData<T>);

fn tensor<T>(data: *mut f32, length: usize, shape: [usize; 4]) -> Tensor<T> {
    assert_eq!(length, shape.iter().product(), "the slice has another length than {shape:?}");
    let sizes = shape.map(|size| size as i64);
    let mut dense = unsafe { c::tw_tensor_contiguous(data as *mut c_void, c::TW_F32, 4, sizes.as_ptr()) };
    dense.device_type = c::TW_CPU;
    Tensor(dense, PhantomData)
}
fn input(data: &[f32], shape: [usize; 4]) -> Tensor<&[f32]> { tensor(data.as_ptr() as *mut f32, data.len(), shape) }
fn output(data: &mut [f32], shape: [usize; 4]) -> Tensor<&mut [f32]> { tensor(data.as_mut_ptr(), data.len(), shape) }

struct Attention(*mut c_void);
struct Mask(*mut c_void);
// Calls on one handle may run on many threads. No method here rebuilds one.
unsafe impl Send for Attention {}
unsafe impl Sync for Attention {}

impl Attention {
    fn new(spec: &str, device: &str) -> Result<Attention, Error> {
        let (spec, device) = (CString::new(spec).unwrap(), CString::new(device).unwrap());
        let options = c::tw_options { struct_size: mem::size_of::<c::tw_options>(), device: device.as_ptr() };
        let mut made = Attention(ptr::null_mut());
        checked(|error| unsafe { c::tw_attention_create(spec.as_ptr(), &options, &mut made.0, error) })?;
        Ok(made)
    }
    /// The mask of calls with q and k of these shapes.
    fn mask(&self, q: [usize; 4], k: [usize; 4]) -> Result<Mask, Error> {
        let (struct_size, [batch, num_q_heads, q_len, _]) = (mem::size_of::<c::tw_shape>(), q.map(|size| size as i64));
        let [_, num_kv_heads, kv_len, _] = k.map(|size| size as i64);
        let shape = c::tw_shape { struct_size, batch, num_q_heads, num_kv_heads, q_len, kv_len };
        let mut made = Mask(ptr::null_mut());
        checked(|error| unsafe { c::tw_mask_create(self.0, &shape, ptr::null(), ptr::null(), &mut made.0, error) })?;
        Ok(made)
    }
    fn forward(&self, q: &Tensor<&[f32]>, k: &Tensor<&[f32]>, v: &Tensor<&[f32]>, out: &mut Tensor<&mut [f32]>,
               mask: &Mask) -> Result<(), Error> {
        let absent: c::tw_tensor = unsafe { mem::zeroed() };
        let struct_size = mem::size_of::<c::tw_call>();
        let call = c::tw_call { struct_size, q: q.0, k: k.0, v: v.0, out: out.0, lse: absent, mask: mask.0 };
        checked(|error| unsafe { c::tw_forward(self.0, &call, error) })
    }
}
impl Mask {
    /// The share of the tiles that a call visits.
    fn density(&self) -> f64 {
        let mut info: c::tw_mask_info = unsafe { mem::zeroed() };
        info.struct_size = mem::size_of::<c::tw_mask_info>();
        checked(|error| unsafe { c::tw_mask_describe(self.0, &mut info, error) }).unwrap();
        info.density
    }
}
impl Drop for Attention {
    fn drop(&mut self) { unsafe { c::tw_attention_destroy(self.0) } }
}
impl Drop for Mask {
    fn drop(&mut self) { unsafe { c::tw_mask_destroy(self.0) } }
}

fn main() -> Result<(), Error> {
    const SHAPE: [usize; 4] = [1, 8, 512, 64];
    let attention = Attention::new(r#"{"dtype": "f32", "head_dim": 64, "mask_mod": "q_idx >= kv_idx"}"#, "cpu")?;
    let mask = attention.mask(SHAPE, SHAPE)?;
    // All scores are equal, and each row of v holds its position: row i of out is the mean of 0 to i.
    let q = vec![0.5f32; SHAPE.iter().product()];
    let v: Vec<f32> = (0..q.len()).map(|i| (i / 64 % 512) as f32).collect();
    let mut out = vec![0f32; q.len()];
    attention.forward(&input(&q, SHAPE), &input(&q, SHAPE), &input(&v, SHAPE), &mut output(&mut out, SHAPE), &mask)?;
    println!("last row: {}, {:.0} % of the tiles visited", out[out.len() - 1], 100.0 * mask.density());
    assert!(out.iter().zip(&v).all(|(mean, position)| (mean - position / 2.0).abs() <= 1e-3));

    let refused = Attention::new(r#"{"dtype": "f32", "head_dim": 64, "mask_mod": "q_idx >= kv_index"}"#, "cpu");
    println!("{:?}", refused.err().expect("kv_index is no name of a mask_mod"));
    Ok(())
}
