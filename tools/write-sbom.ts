import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { billOfMaterials } from './bill-of-materials.js'
import { packed } from './packed.js'

// `npm run sbom`: packs both packages and writes a bill of materials beside each, in CycloneDX.
for (const name of ['sluicegate', 'sluicegate-server'] as const) {
  const { filename } = await packed(name, 'packed')
  const file = `packed/${filename.replace('.tgz', '.cdx.json')}`
  writeFileSync(file, billOfMaterials(resolve('packed', filename)))
  console.log(file)
}
