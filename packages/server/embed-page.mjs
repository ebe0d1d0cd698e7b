// Bundles the live page and the page of reports (code, uPlot, style) into assets.gen.ts beside their folders, so that the published
// server needs no files beside its code and no other host. Run by `npm run build` before TypeScript.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

// uPlot's own files do not mark their licence as a comment to keep, and its terms ask for it.
const terms = readFileSync(fileURLToPath(import.meta.resolve('uplot')).replace(/dist\/.*$/, 'LICENSE'), 'utf8').trim()
const licence = `/*! With uPlot (https://github.com/leeoniya/uPlot):\n${terms}\n*/`

await embed('dashboard', {
  PAGE_HTML: (page) => readFileSync(`${page}index.html`, 'utf8'),
  PAGE_ICON: (page) => readFileSync(`${page}icon.svg`, 'utf8'),
  PAGE_SCRIPT: (page) => bundled(`${page}main.ts`),
  PAGE_STYLE: (page) => bundled(`${page}style.css`),
})
await embed('report', {
  REPORT_HTML: (page) => readFileSync(`${page}index.html`, 'utf8'),
  REPORT_SCRIPT: (page) => bundled(`${page}main.ts`),
  REPORT_STYLE: (page) => bundled(`${page}style.css`),
})

async function embed(folder, assets) {
  const page = fileURLToPath(new URL(`src/${folder}/page/`, import.meta.url))
  const lines = []
  for (const [name, content] of Object.entries(assets))
    lines.push(`export const ${name}: string = ${JSON.stringify(await content(page))}\n`)
  writeFileSync(new URL(`src/${folder}/assets.gen.ts`, import.meta.url), lines.join(''))
  console.log(`Embedded the page of src/${folder}: ${Math.ceil(lines.join('').length / 1024)} kB`)
}

async function bundled(entry) {
  const options = { entryPoints: [entry], bundle: true, minify: true, write: false, format: 'iife', target: 'es2022' }
  const { outputFiles } = await build({ ...options, banner: { js: licence, css: licence }, charset: 'utf8', logLevel: 'warning' })
  return outputFiles[0].text
}
