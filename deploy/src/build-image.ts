import { buildExecutable } from './executable/executable.js'
import { buildImage } from './image/image.js'

// `npm run image`: builds the container image and says where it is.
const { path, bytes, digest } = buildImage(await buildExecutable())
console.log(`${path}: ${(bytes / 1e6).toFixed(1)} MB in a registry, ${digest}`)
