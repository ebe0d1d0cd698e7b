import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { BUILT, installGenerator, pathThere, SITE, writeApiReference } from './api-reference.js'
import { serveFolder } from './static-server.js'

// `npm run site`: builds the site from docs; `--serve` shows it, `--pictures` takes those of the documents.
const { values } = parseArgs({
  options: {
    serve: { type: 'boolean' },
    pictures: { type: 'boolean' },
    port: { type: 'string', default: '4173' },
    base: { type: 'string', default: '/' },
  },
})
buildSite(values.base)
console.log(`The site is in ${BUILT}`)
if (values.pictures === true) await (await import('./take-pictures.js')).takePictures()
if (values.serve === true) {
  const { url } = await serveFolder(BUILT, { port: Number(values.port), base: values.base })
  console.log(`Shown at ${url}; Ctrl+C ends it`)
}

function buildSite(base: string): void {
  installGenerator()
  writeApiReference()
  const vitepress = pathThere('vitepress/package.json').replace('package.json', 'bin/vitepress.js')
  const env = { ...process.env, SITE_BASE: base }
  const { status } = spawnSync(process.execPath, [vitepress, 'build', SITE], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error('VitePress failed: see above')
}
