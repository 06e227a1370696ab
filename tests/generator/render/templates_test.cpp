#include "generator/render/templates.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "generator/render/embedded_templates.hpp"
#include "tests/support/catch.hpp"

namespace {

namespace fs = std::filesystem;

// Sets TILEWRIGHT_TEMPLATES for one scope.
class TemplatesVariable {
 public:
  explicit TemplatesVariable(const std::string& folder) {
    const char* const old = std::getenv("TILEWRIGHT_TEMPLATES");
    if (old) old_ = old;
    setenv("TILEWRIGHT_TEMPLATES", folder.c_str(), 1);
  }
  ~TemplatesVariable() {
    old_.empty() ? unsetenv("TILEWRIGHT_TEMPLATES")
                 : setenv("TILEWRIGHT_TEMPLATES", old_.c_str(), 1);
  }
  TemplatesVariable(const TemplatesVariable&) = delete;
  TemplatesVariable& operator=(const TemplatesVariable&) = delete;

 private:
  std::string old_;
};

}  // namespace

TEST_CASE("templates: without a folder those that were built in are served") {
  const TemplatesVariable unset("");
  const auto loader = tilewright::default_template_loader();
  REQUIRE(!tilewright::embedded_templates().empty());
  CHECK(loader->names().size() == tilewright::embedded_templates().size());
  for (const tilewright::EmbeddedTemplate& file : tilewright::embedded_templates()) {
    CHECK(loader->load(file.name) == std::string(file.text));
  }
  CHECK(!loader->load("no/such.jinja"));
}

TEST_CASE("templates: a folder replaces what was built in, and nothing outside it is read") {
  const fs::path root = fs::temp_directory_path() / "tilewright_templates_test";
  fs::remove_all(root);
  fs::create_directories(root / "templates/cpu");
  std::ofstream(root / "templates/cpu/x.jinja") << "text\n";
  std::ofstream(root / "secret.jinja") << "secret\n";
  const TemplatesVariable folder((root / "templates").string());
  const auto loader = tilewright::default_template_loader();
  CHECK(loader->load("cpu/x.jinja") == std::string("text\n"));
  CHECK(loader->names() == std::vector<std::string>{"cpu/x.jinja"});
  CHECK(!loader->load("abi/cpu.hpp"));
  CHECK(loader->origin().find("TILEWRIGHT_TEMPLATES") != std::string::npos);
  CHECK(!loader->load("../secret.jinja"));
  CHECK(!loader->load("cpu/../../secret.jinja"));
  CHECK(!loader->load((root / "secret.jinja").string()));
  CHECK(!loader->load("cpu"));
  CHECK(!loader->load(""));
  fs::remove_all(root);
}

TEST_CASE("templates: a folder without templates is an error at once, however large it is") {
  const fs::path root = fs::temp_directory_path() / "tilewright_no_templates_test";
  fs::remove_all(root);
  fs::path deep = root;
  for (int i = 0; i < 50; ++i) deep /= "folder";
  fs::create_directories(deep);
  std::ofstream(root / "some.jinja") << "text\n";
  const TemplatesVariable folder(root.string());
  try {
    tilewright::default_template_loader();
    FAIL("a folder of other files was taken for one of templates");
  } catch (const tilewright::Error& error) {
    CHECK(error.message().find("TILEWRIGHT_TEMPLATES") != std::string::npos);
    CHECK(error.message().find("cpu/kernels/forward.cpp.jinja is missing") != std::string::npos);
  }
  fs::remove_all(root);
}

TEST_CASE("templates: a folder that does not exist is an error") {
  const TemplatesVariable folder("/no/such/folder");
  CHECK_THROWS_AS(tilewright::default_template_loader(), tilewright::Error);
}
