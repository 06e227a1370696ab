#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generator/render/engine/engine.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"

namespace tilewright::mutants {

// What a GPU usually does in time, made late: copies by tensors that lie across its bus
// (far_memory.hpp), warps by sleep that is put into the templates. A kernel that waits for what it
// needs gives the same bits, late or not, so nothing else is compared.

/// The templates with warps that sleep: thread 0 before it makes the barriers, and now and then any
/// after a wait for a barrier.
std::shared_ptr<const jinja::Loader> sleepy_templates(std::shared_ptr<const jinja::Loader> awake);

/// Hopper's kernel with many q tiles for each block of threads, its output staged in a place of its
/// own and over Q.
std::vector<Spec> specs_with_many_q_tiles();
/// The same with a block of threads for each q tile.
Spec spec_with_many_blocks();
/// The same, with one place of Q: a multiprocessor's next block of threads takes the memory of one
/// whose last copies are late, if no thread waited for them.
Spec spec_with_many_blocks_of_one_place();
/// The portable kernel with several stages.
Spec spec_with_stages();
/// The portable kernel with Q in registers, whose rows the warps brought for one another.
Spec spec_with_q_in_registers();

// Each runs its call near and in time, and in another way, and returns what differs, as a sentence;
// empty where nothing does.

/// out lies far away.
std::string wrong_with_far_output(const Attention& attention);
/// q, k and v lie far away.
std::string wrong_with_far_inputs(const Attention& attention);
/// out lies far away; then warps of Hopper's kernel are late: the one that makes the barriers, and
/// any after a barrier.
std::string wrong_with_far_output_or_late_warps(const Attention& attention,
                                                const Toolchain& kernels);

}  // namespace tilewright::mutants
