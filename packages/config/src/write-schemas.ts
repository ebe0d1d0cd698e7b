import { mkdirSync, writeFileSync } from 'node:fs'
import { envoySchema, ownSchema } from './json-schema.js'

// A part of the build: writes the schemas for editors into a folder.
const folder = process.argv[2] ?? '.'
mkdirSync(folder, { recursive: true })
for (const [name, schema] of Object.entries({ sluicegate: ownSchema(), 'envoy-ratelimit': envoySchema() }))
  writeFileSync(`${folder}/${name}.json`, `${JSON.stringify(schema, null, 2)}\n`)
