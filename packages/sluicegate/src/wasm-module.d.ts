/** As bundlers for Cloudflare's runtime import WebAssembly: compiled. */
declare module '*.wasm' {
  const module: WebAssembly.Module
  export default module
}
