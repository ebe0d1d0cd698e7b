import core from '../core.wasm'
import { onceInProcess } from './once-in-process.js'

// Limiters in memory are made of the imported module from now on: Cloudflare's runtime compiles none from bytes.
onceInProcess('core', (): { module?: WebAssembly.Module } => ({})).module = core
