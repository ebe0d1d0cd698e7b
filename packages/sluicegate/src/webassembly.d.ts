// The little of WebAssembly's JavaScript interface that `memory/` uses (core-memory.ts, open-core.ts); neither es2023 nor Node's types declare it without the DOM's.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
  class Instance {
    constructor(module: Module, imports: object)
    readonly exports: Readonly<Record<string, unknown>>
  }
  class Memory {
    constructor(limits: { initial: number; maximum: number; shared: true })
    readonly buffer: SharedArrayBuffer
    grow(pages: number): number
  }
  interface Global {
    readonly value: number
  }
}
