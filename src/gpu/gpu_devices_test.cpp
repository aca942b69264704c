// Several devices in one process: how they are named, and that both providers open the second of two equal ones.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/process.h"
#include "gpu/device_list.h"
#include "gpu/gpu_test_fixture.h"

namespace doppler::gpu {
namespace {

// Shows the Vulkan loader two drivers in place of one, the second a copy of the first: two devices that no name tells
// apart. For a driver in one file, named by VK_DRIVER_FILES.
class TwoDrivers {
 public:
  TwoDrivers() {
    const char* const given = std::getenv("VK_DRIVER_FILES");
    if (!given) return;
    manifest_ = given;
    std::ifstream in(manifest_);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    std::smatch found;
    if (!std::regex_search(text, found, std::regex("\"library_path\": *\"(/[^\"]*)\""))) return;
    folder_ =
        std::filesystem::temp_directory_path() / ("doppler-two-drivers-" + std::to_string(process_id()));
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(found[1].str(), folder_ / "copy.so");
    std::ofstream(folder_ / "copy.json") << found.prefix() << "\"library_path\": \""
                                         << (folder_ / "copy.so").string() << '"' << found.suffix();
    setenv("VK_DRIVER_FILES", (manifest_ + ":" + (folder_ / "copy.json").string()).c_str(), 1);
  }
  ~TwoDrivers() {
    if (!are_there()) return;
    setenv("VK_DRIVER_FILES", manifest_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  bool are_there() const { return !folder_.empty(); }

 private:
  std::string manifest_;
  std::filesystem::path folder_;
};

TEST_F(GpuTest, OpensTheSecondOfTwoEqualDevices) {
  const TwoDrivers drivers;
  if (!drivers.are_there()) GTEST_SKIP() << "VK_DRIVER_FILES names no driver that can be copied";
  const std::string provider = device_->caps().provider;
  const std::vector<AdapterInfo> infos = list_adapters(provider);
  ASSERT_EQ(infos.size(), 2u);
  for (const AdapterInfo& info : infos) {
    EXPECT_EQ(info.problem, "");
    EXPECT_EQ(info.caps.adapter, device_->caps().adapter);
  }
  const auto all = each_device({.provider = provider, .adapter = "all"});
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 2u);
  std::vector<std::unique_ptr<Device>> devices;
  for (const DeviceOptions& options : *all) {
    auto opened = open(options);
    ASSERT_TRUE(opened) << opened.error().message();
    devices.push_back(std::move(*opened));
  }
  for (const auto& device : devices) {
    auto making = device->create_buffer({"word", 4, BufferUse::kStorage});
    const auto buffer = run_to_completion(*device, std::move(making));
    ASSERT_TRUE(buffer) << buffer.error().message();
    ASSERT_TRUE(device->write(*buffer, 0, bytes_of({7})));
    const auto read = run_to_completion(*device, device->read_buffer({buffer->id(), 0, 4}));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(words_of(*read), std::vector<uint32_t>{7});
  }
}

TEST(DeviceNames, NumbersWithCommasNameSeveral) {
  EXPECT_TRUE(names_several("all"));
  EXPECT_TRUE(names_several("0,1"));
  EXPECT_TRUE(names_several("0,0"));
  for (const char* const one : {"", "0", "nvidia", "llvmpipe (LLVM 15.0.6, 256 bits)", "0,", "0,x"})
    EXPECT_FALSE(names_several(one)) << one;
  const auto each = each_device({.provider = "wgpu", .adapter = "1,0"});
  ASSERT_TRUE(each) << each.error().message();
  ASSERT_EQ(each->size(), 2u);
  EXPECT_EQ((*each)[0].adapter, "1");
  EXPECT_EQ((*each)[1].adapter, "0");
}

}  // namespace
}  // namespace doppler::gpu
