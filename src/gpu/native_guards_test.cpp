// Tests of the guards between a provider and the user, without a provider: traps, the error slot, captured prints,
// aborts.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "base/process.h"
#include "gpu/blob_cache_native.h"
#include "gpu/errors_native.h"
#include "gpu/guards_native.h"
#include "gpu/provider_native.h"

namespace doppler::gpu {
namespace {

void raise_error(ErrorSlot& slot, WGPUErrorType type, const char* text) {
  ErrorSlot::on_uncaptured(nullptr, type, to_view(text), &slot, nullptr);
}

TEST(ErrorTrap, CatchesTheFirstErrorOfItsThreadOnly) {
  ErrorSlot slot;
  ErrorTrap outer;
  {
    const ErrorTrap inner;
    raise_error(slot, WGPUErrorType_Validation, "first");
    raise_error(slot, WGPUErrorType_OutOfMemory, "second");
    std::thread([&] { raise_error(slot, WGPUErrorType_Validation, "elsewhere"); }).join();
    EXPECT_EQ(inner.message(), "first");
    EXPECT_FALSE(inner.out_of_memory());
  }
  EXPECT_FALSE(outer.caught());
  raise_error(slot, WGPUErrorType_Validation, "Not enough memory left.");
  EXPECT_TRUE(outer.out_of_memory());
  const auto status = slot.take();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().sentence(), "The GPU provider reported an error: elsewhere");
  EXPECT_TRUE(slot.take());
}

TEST(ErrorSlot, ALostDeviceStaysInError) {
  ErrorSlot slot;
  raise_error(slot, WGPUErrorType_OutOfMemory, "earlier");
  ErrorSlot::on_lost(nullptr, WGPUDeviceLostReason_Unknown, to_view("the driver reset"), &slot, nullptr);
  EXPECT_TRUE(slot.lost());
  for (int look = 0; look < 2; ++look) {
    const auto status = slot.take();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::kDevice);
    EXPECT_EQ(status.error().sentence(),
              "The GPU device was lost (the driver reset). Open it again to go on.");
  }
}

TEST(ErrorSlot, ClosingTheDeviceIsNoLoss) {
  ErrorSlot slot;
  slot.close();
  ErrorSlot::on_lost(nullptr, WGPUDeviceLostReason_Destroyed, to_view("bye"), &slot, nullptr);
  EXPECT_FALSE(slot.lost());
}

// Dawn takes what it gets and prints a line for each thing in it that it does not understand.
TEST(BlobCache, ADamagedFileIsAsIfItWereNotThere) {
  BlobCache cache{.folder = testing::TempDir() + "/blob_cache_test." + std::to_string(process_id())};
  const DawnCache dawn = make_dawn_cache(cache);
  const std::string key = "a key", value(3000, 'v');
  const auto bytes = [](const std::string& text) { return reinterpret_cast<const uint8_t*>(text.data()); };
  const auto load = [&](uint8_t* to, size_t room) {
    return dawn.load.load(key.size(), bytes(key), room, to, &cache, nullptr);
  };
  EXPECT_EQ(load(nullptr, 0), 0u);
  dawn.store.store(key.size(), bytes(key), value.size(), bytes(value), &cache, nullptr);
  std::string got(value.size(), ' ');
  EXPECT_EQ(load(nullptr, 0), value.size());
  EXPECT_EQ(load(reinterpret_cast<uint8_t*>(got.data()), got.size()), value.size());
  EXPECT_EQ(got, value);
  EXPECT_EQ(cache.found, 1u);
  const std::filesystem::path file = std::filesystem::directory_iterator(cache.folder)->path();
  const auto whole = std::filesystem::file_size(file);
  for (const uint64_t kept : {whole, whole - 1, uint64_t{5}}) {
    dawn.store.store(key.size(), bytes(key), value.size(), bytes(value), &cache, nullptr);
    if (kept == whole) {
      std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
      stream.seekp(static_cast<std::streamoff>(whole - 100));
      stream.put('x');
    }
    std::filesystem::resize_file(file, kept);
    EXPECT_EQ(load(nullptr, 0), 0u) << kept;
    EXPECT_FALSE(std::filesystem::exists(file)) << kept;
  }
  std::filesystem::remove_all(cache.folder);
}

TEST(StderrCapture, TurnsPrintsOfItsOwnProcessIntoDebugLines) {
  std::string seen;
  set_log_level(LogLevel::kDebug);
  set_log_sink([&](LogLevel, std::string_view line) { seen += line; });
  const auto print = [] {
    const StderrCapture capture;
    ASSERT_GE(std::fputs("warning: odd driver\n", stderr), 0);
  };
  print();
  EXPECT_EQ(seen, "") << "stderr of somebody else's program was redirected";
  own_process();
  print();
  set_log_sink({});
  set_log_level(LogLevel::kWarning);
  EXPECT_NE(seen.find("the provider printed: warning: odd driver"), std::string::npos) << seen;
}

TEST(Provider, AnOlderDawnIsRefusedBeforeItIsCalled) {
  const auto opened = Provider::open(DOPPLER_OLDER_DAWN);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(opened.error().sentence(), DOPPLER_OLDER_DAWN
            " is an older Dawn, whose structures and numbers of features are others: it lacks "
            "wgpuGetInstanceFeatures.");
}

TEST(AbortGuardDeathTest, AnAbortOfTheProviderBecomesASentence) {
#ifdef _WIN32
  const testing::ExitedWithCode aborted(3);
#else
  const testing::KilledBySignal aborted(SIGABRT);
#endif
  EXPECT_EXIT(
      {
        AbortGuard::install();
        const AbortGuard guard;
        std::abort();
      },
      testing::ExitedWithCode(1), "the WebGPU provider wgpu-native gave up");
  EXPECT_EXIT(
      {
        AbortGuard::install();
        {
          const AbortGuard guard;
        }
        std::abort();
      },
      aborted, "");
}

}  // namespace
}  // namespace doppler::gpu
