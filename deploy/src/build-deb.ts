import { buildDebianPackage } from './debian/debian-package.js'
import { buildExecutable } from './executable/executable.js'

// `npm run deb`: builds the package for Debian and Ubuntu and says where it is.
const { path, bytes } = buildDebianPackage(await buildExecutable())
console.log(`${path}: ${(bytes / 1e6).toFixed(1)} MB`)
