// Walks the syntax tree of one template for one rendering. Scopes follow jinja2: for, macro, with, call and
// block-set bodies have their own, if has none; a macro sees the scope it was defined in.
// Read next: interpreter.cpp (statements), interpreter_expressions.cpp.
#pragma once

#include <memory>

#include "tokenizer/template/ast.h"
#include "tokenizer/template/machine.h"

namespace doppler::tmpl {

struct RenderInput;  // render_input.h

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<uint32_t, Value>> variables;  // by index of Program::names
  bool captured = false;                              // a macro may still look here after the scope has ended
};

struct MacroState {
  const MacroSpec* spec = nullptr;
  Scope* scope = nullptr;  // where it was defined
};

class Interpreter {
 public:
  // Both must outlive the interpreter.
  Interpreter(const Program& program, const RenderInput& input);
  Result<std::string> run();

 private:
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };

  // Counts one level of recursion and one step; fails past kMaxEvalDepth.
  class Level {
   public:
    explicit Level(Interpreter& owner) : owner_(owner) { ++owner_.depth_; }
    ~Level() { --owner_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Interpreter& owner_;
  };
  Result<void> enter(const Node& node);

  // A scope for the time of a block.
  class ScopeGuard {
   public:
    ScopeGuard(Interpreter& owner, Scope* parent);
    ~ScopeGuard();
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

   private:
    Interpreter& owner_;
    Scope* outer_;
    std::unique_ptr<Scope> scope_;
  };

  // interpreter.cpp
  Result<Flow> execute(NodeId id);
  Result<Flow> execute_for(const Node& node);
  Result<Flow> execute_if(const Node& node);
  Result<void> execute_set_block(const Node& node);
  Result<void> execute_call_block(const Node& node);
  Result<Flow> execute_scope(const Node& node);
  Result<std::string> captured_output(NodeId body);
  Result<void> write(std::string_view text);
  Result<Value> chosen_items(const Node& node, const Value& iterable);
  Result<Flow> run_loop(const Node& node, const Value& iterable, size_t depth0);
  Result<Value> call_loop(const LoopState& loop, const Arguments& arguments);
  Result<void> assign(const Node& target, Value value);
  void set_variable(uint32_t name, Value value);
  Result<Value> lookup(uint32_t name);
  Result<Value> define_macro(const MacroSpec& spec);
  Result<Value> call_macro(const MacroState& macro, Arguments arguments);

  // interpreter_expressions.cpp
  Result<Value> evaluate(NodeId id);
  Result<Value> evaluate_collection(const Node& node);
  Result<Value> evaluate_comparison(const Node& node);
  Result<Value> evaluate_slice(const Node& node);
  Result<Value> evaluate_call(const Node& node, const Value* caller);
  Result<Value> evaluate_filter(const Node& node, const Value* chain_input);
  Result<Value> evaluate_test(const Node& node);
  Result<Arguments> evaluate_arguments(const CallSpec& call);

  const Node& node(NodeId id) const { return program_.nodes[id]; }
  NodeId child(const Node& parent, size_t i) const { return program_.children[parent.list + i]; }
  // Puts a variable of the RenderInput into the root scope.
  Result<void> add_input(std::string_view name, const Json& json);

  const Program& program_;
  const RenderInput& input_;
  Machine machine_;
  std::string* out_ = nullptr;  // where statements print: the result, or a captured block
  Scope* scope_ = nullptr;
  int depth_ = 0;
  std::vector<std::unique_ptr<Scope>> captured_;
  std::vector<std::unique_ptr<MacroState>> macros_;
};

}  // namespace doppler::tmpl
