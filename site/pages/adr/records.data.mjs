import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { titleOf } from '../../dist/sidebar.js'

const FOLDER = fileURLToPath(new URL('../../../docs/adr/', import.meta.url))

/** The records by number. */
export default {
  load() {
    const files = readdirSync(FOLDER).sort()
    return files.map((file) => ({ link: `./${file.replace(/\.md$/, '')}`, title: titleOf(`${FOLDER}${file}`).replace(/^\d+\. /, '') }))
  },
}
