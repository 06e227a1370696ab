#include "c/error.hpp"
#include "c/text.hpp"

using namespace tilewright;
using namespace tilewright::capi;

extern "C" tw_status tw_explain(const char* spec_json, const char* target, char* buffer,
                                size_t* size, tw_error** error) {
  return guarded(error, [&] {
    const Spec spec = spec_from_json(&required(spec_json, "spec_json"));
    const Target wanted = target ? Target::parse(target) : Target::host_cpu();
    copy_text(explain(spec, wanted).to_json(), buffer, size);
  });
}
