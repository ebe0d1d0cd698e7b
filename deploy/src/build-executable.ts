import { buildExecutable } from './executable/executable.js'
import { version } from './software.js'

// `npm run executable`: builds the one file and says where it is.
const { path, bytes } = await buildExecutable()
console.log(`${path}: sluicegate ${version()}, ${(bytes / 1e6).toFixed(1)} MB`)
