// Bundles the live page (its code, uPlot, its style) into src/dashboard/assets.gen.ts, so that the published server needs
// no files beside its code and no other host. Run by `npm run build` before TypeScript.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const page = fileURLToPath(new URL('src/dashboard/page/', import.meta.url))
const target = fileURLToPath(new URL('src/dashboard/assets.gen.ts', import.meta.url))

// uPlot's own files do not mark their licence as a comment to keep, and its terms ask for it.
const terms = readFileSync(fileURLToPath(import.meta.resolve('uplot')).replace(/dist\/.*$/, 'LICENSE'), 'utf8').trim()
const licence = `/*! With uPlot (https://github.com/leeoniya/uPlot):\n${terms}\n*/`

async function bundled(entry) {
  const options = { entryPoints: [page + entry], bundle: true, minify: true, write: false, format: 'iife', target: 'es2022' }
  const { outputFiles } = await build({ ...options, banner: { js: licence, css: licence }, charset: 'utf8', logLevel: 'warning' })
  return outputFiles[0].text
}

const assets = {
  PAGE_HTML: readFileSync(`${page}index.html`, 'utf8'),
  PAGE_ICON: readFileSync(`${page}icon.svg`, 'utf8'),
  PAGE_SCRIPT: await bundled('main.ts'),
  PAGE_STYLE: await bundled('style.css'),
}
const source = Object.entries(assets).map(([name, text]) => `export const ${name} = ${JSON.stringify(text)}\n`)
writeFileSync(target, source.join(''))
console.log(
  `Embedded the page: ${Math.ceil(assets.PAGE_SCRIPT.length / 1024)} kB of script, ${Math.ceil(assets.PAGE_STYLE.length / 1024)} kB of style`,
)
