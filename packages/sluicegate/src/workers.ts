import core from '../core.wasm'
import { useCompiledCore } from './memory/open-core.js'

// The one module of the library that imports WebAssembly: for runtimes that compile none from bytes.
useCompiledCore(core)
