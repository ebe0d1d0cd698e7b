import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { billOfMaterials } from './bill-of-materials.js'
import { packed } from './packed.js'

// `npm run sbom`: packs both packages and writes a bill of materials beside each, in CycloneDX.
const library = await packed('sluicegate', 'packed')
const service = await packed('sluicegate-server', 'packed')
for (const needed of [[library], [library, service]]) {
  const file = `packed/${needed.at(-1)?.filename.replace('.tgz', '.cdx.json')}`
  writeFileSync(file, billOfMaterials(needed.map(({ filename }) => resolve('packed', filename))))
  console.log(file)
}
