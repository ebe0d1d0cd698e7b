import { writeCommonJs } from './commonjs-form.js'

// The CommonJS form of the library, after tsc. Run from the root.
console.log(await writeCommonJs())
