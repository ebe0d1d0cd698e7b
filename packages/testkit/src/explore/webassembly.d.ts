/// <reference path="../../../sluicegate/src/webassembly.d.ts" />
// What the exploration uses of WebAssembly's JavaScript interface beside what the library uses.
declare namespace WebAssembly {
  class RuntimeError extends Error {}
}
