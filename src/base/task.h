// Task<T>: a coroutine that runs until it waits for the GPU, a file or the network, and is resumed when that is
// done: natively by the poll loop (gpu/device.h), in the browser by a callback. Task starts when first awaited or
// start()ed, is owned by one holder, and destroying it destroys the coroutine (waits that finish later are
// dropped safely through Completion's shared state).
//
//   Task<Result<void>> load() { DP_CO_TRY(auto bytes, co_await source.read(0, 64)); ... co_return Result<void>(); }
//
// GCC 12 miscompiles some temporaries inside a co_await expression: bind arguments to names first.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace doppler {

template <class T>
class [[nodiscard]] Task {
  static_assert(!std::is_void_v<T>, "Task needs a value; use Task<Result<void>>.");

 public:
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> waiter = std::noop_coroutine();

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        return self.promise().waiter;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    template <class U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
    void unhandled_exception() noexcept { std::abort(); }
  };

  Task() = default;
  Task(Task&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), started_(std::exchange(other.started_, false)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
      started_ = std::exchange(other.started_, false);
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool valid() const { return static_cast<bool>(handle_); }
  bool done() const { return handle_ && handle_.done(); }
  // Runs to the first wait. For the outermost task, and for one that shall run beside its owner, which awaits it later;
  // otherwise an awaited one starts by itself.
  void start() {
    if (!started_ && handle_) {
      started_ = true;
      handle_.resume();
    }
  }
  // The result, once done().
  T take() { return std::move(*handle_.promise().value); }

  struct Awaiter {
    std::coroutine_handle<promise_type> handle;
    bool runs;  // already: it waits for something itself
    bool await_ready() const noexcept { return handle.done(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
      handle.promise().waiter = waiter;
      return runs ? std::coroutine_handle<>(std::noop_coroutine()) : std::coroutine_handle<>(handle);
    }
    T await_resume() { return std::move(*handle.promise().value); }
  };
  Awaiter operator co_await() && { return Awaiter{handle_, std::exchange(started_, true)}; }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_ = nullptr;
  bool started_ = false;
};

// The other end of a wait: made by whoever starts an operation, completed once by its callback, awaited once.
// All on one thread; a callback from another thread must hand over first.
template <class T>
class Completion {
 public:
  Completion() : state_(std::make_shared<State>()) {}

  void complete(T value) const {
    state_->value.emplace(std::move(value));
    if (auto waiter = std::exchange(state_->waiter, nullptr)) waiter.resume();
  }
  bool ready() const { return state_->value.has_value(); }

  struct State {
    std::optional<T> value;
    std::coroutine_handle<> waiter = nullptr;
  };
  struct Awaiter {
    std::shared_ptr<State> state;
    bool waiting = false;
    explicit Awaiter(std::shared_ptr<State> shared) : state(std::move(shared)) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (waiting) state->waiter = nullptr;  // the coroutine is being destroyed while it waits
    }
    bool await_ready() const noexcept { return state->value.has_value(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
      waiting = true;
      state->waiter = waiter;
    }
    T await_resume() {
      waiting = false;
      return std::move(*state->value);
    }
  };
  Awaiter operator co_await() const { return Awaiter(state_); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace doppler
