import { packed } from './packed.js'
import { FOLDER_OF, type Published } from './published.js'

// Packs both packages as they are published into the folder `packed`. Run from the root, after a build.
for (const name of Object.keys(FOLDER_OF) as Published[]) {
  const { filename, size, unpackedSize } = await packed(name, 'packed')
  console.log(`packed/${filename}: ${Math.ceil(size / 1000)} kB, unpacked ${Math.ceil(unpackedSize / 1000)} kB`)
}
