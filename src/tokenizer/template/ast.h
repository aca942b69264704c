// The syntax tree of a template: one flat array of nodes, children by index, so that a parsed template is a
// few vectors without pointers and is destroyed without recursion. Read next: parser.h (makes it),
// interpreter.h (walks it).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/template/filters.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/value.h"

namespace doppler::tmpl {

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

// a, b, c and list are the fields of Node.
enum class NodeKind : uint8_t {
  // Expressions.
  kConst,       // a: index of constants
  kName,        // a: index of names
  kList,        // list: elements
  kTuple,       // list: elements
  kDict,        // list: key, value, key, value, ...
  kArithmetic,  // op: Operator; a, b: operands (b none for kNeg and kPos)
  kAnd,         // a, b
  kOr,          // a, b
  kNot,         // a
  kCompare,     // list: first operand, then op, operand, op, operand ...; an op is a Comparison
  kConcat,      // list: operands of ~
  kCondition,   // a if b else c
  kAttribute,   // a: object; b: index of names
  kItem,        // a: object; b: key
  kSlice,       // a: object; list: start, stop, step or kNoNode
  kCall,        // a: callee; b: index of calls
  kFilter,      // a: operand or none in a filter block; b: index of calls; c: index of filters
  kTest,        // a: operand, b: index of calls, c: index of tests, op: 1 if negated
  // Statements.
  kText,         // a: index of constants
  kOutput,       // a: expression
  kBlock,        // list: statements
  kScope,        // a: body, in a scope of its own; list: target, value, target, value, ... of {% with %}
  kFor,          // a: index of loops
  kIf,           // list: condition, body, condition, body, ...; a: else body or none
  kSet,          // a: target; b: expression
  kSetBlock,     // a: target; b: body; c: filter chain or none
  kFilterBlock,  // a: filter chain; b: body
  kMacro,        // a: index of macros
  kCallBlock,    // a: index of macros (the body); b: the call node
  kBreak,
  kContinue,
  // Targets of set and for: kName, kTuple of targets, or this.
  kNamespaceRef,  // a: index of names (the namespace); b: index of names (its attribute)
};

struct Node {
  NodeKind kind;
  uint8_t op = 0;
  uint32_t line = 1;
  uint32_t a = kNoNode;
  uint32_t b = kNoNode;
  uint32_t c = kNoNode;
  uint32_t list = 0;  // first index in Program::children
  uint32_t list_count = 0;
};

struct CallSpec {
  std::vector<NodeId> positional;
  std::vector<std::pair<std::string, NodeId>> named;
  NodeId star = kNoNode;         // *args
  NodeId double_star = kNoNode;  // **kwargs
};

struct LoopSpec {
  NodeId target, iterable, condition, body, otherwise;  // condition and otherwise may be none
  bool is_recursive;                                    // its body may call it: loop(children)
};

struct MacroSpec {
  std::string name;
  std::vector<uint32_t> parameters;  // indices of names
  std::vector<NodeId> defaults;      // of the last parameters
  NodeId body = kNoNode;
  uint32_t varargs = kNoNode,
           kwargs = kNoNode;  // indices of names, if the body reads the remaining arguments
};

template <class Function>
struct Named {
  std::string name;
  Function function;  // null when there is none of the name: an error only if it is reached, as in jinja2
};

struct Program {
  std::vector<Node> nodes;
  std::vector<NodeId> children;
  std::vector<Value> constants;
  std::vector<std::string> names;
  std::vector<CallSpec> calls;
  std::vector<LoopSpec> loops;
  std::vector<MacroSpec> macros;
  std::vector<Named<Filter>> filters;
  std::vector<Named<Test>> tests;
  NodeId root = kNoNode;
};

}  // namespace doppler::tmpl
