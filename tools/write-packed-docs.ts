import { writePackedDocs } from './packed-docs.js'

// The guides and examples that packages carry. Run from the root.
console.log(writePackedDocs())
