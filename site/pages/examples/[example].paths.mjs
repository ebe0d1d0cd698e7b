import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { nameOfExample, pageOf } from '../../dist/page-addresses.js'

const FOLDER = fileURLToPath(new URL('../../../examples/', import.meta.url))

/** A page for each program and file among the examples. */
export default {
  paths() {
    const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).map((file) => `examples/${file}`)
    return files
      .filter((file) => !file.endsWith('.md') && pageOf(file) !== undefined)
      .map((file) => {
        const text = readFileSync(`${FOLDER}${file.slice('examples/'.length)}`, 'utf8')
        return { params: { example: nameOfExample(file), file }, content: `\`\`\`${languageOf(file)}\n${text}\n\`\`\`` }
      })
  },
}

function languageOf(file) {
  const ending = file.split(/[./]/).at(-1)
  return { mjs: 'js', conf: 'nginx', yml: 'yaml', cfg: 'text', Caddyfile: 'text' }[ending] ?? ending
}
