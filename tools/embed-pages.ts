import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { build } from 'esbuild'

/** Folders with a page in `page/`, and the constants of its files. */
const PAGES = [
  {
    folder: 'packages/server/src/dashboard',
    prefix: 'PAGE',
    files: { HTML: 'index.html', ICON: 'icon.svg', SCRIPT: 'main.ts', STYLE: 'style.css' },
  },
  { folder: 'packages/commands/src/report', prefix: 'REPORT', files: { HTML: 'index.html', SCRIPT: 'main.ts', STYLE: 'style.css' } },
] as const

/**
 * Bundles the live page and the page of reports (code, uPlot, style) into `assets.gen.ts` beside their folders, so that the published
 * service needs no files beside its code and no other host. Run from the root.
 */
export async function embedPages(): Promise<string> {
  const sizes: string[] = []
  for (const { folder, prefix, files } of PAGES) {
    const lines: string[] = []
    for (const [name, file] of Object.entries(files)) {
      const path = `${folder}/page/${file}`
      const text = /\.(ts|css)$/.test(file) ? await bundled(path) : readFileSync(path, 'utf8')
      lines.push(`export const ${prefix}_${name}: string = ${JSON.stringify(text)}\n`)
    }
    writeFileSync(`${folder}/assets.gen.ts`, lines.join(''))
    sizes.push(`${folder.split('/').at(-1)} ${Math.ceil(lines.join('').length / 1024)} kB`)
  }
  return `Embedded the pages: ${sizes.join(', ')}`
}

async function bundled(entry: string): Promise<string> {
  const licence = `/*! With uPlot (https://github.com/leeoniya/uPlot):\n${uPlotTerms()}\n*/`
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    banner: { js: licence, css: licence },
    charset: 'utf8',
    logLevel: 'warning',
  })
  return outputFiles[0]?.text ?? ''
}

/** uPlot's own files do not mark their licence as a comment to keep, and its terms ask for it. */
function uPlotTerms(): string {
  const file = createRequire(import.meta.url)
    .resolve('uplot')
    .replace(/dist\/.*$/, 'LICENSE')
  return readFileSync(file, 'utf8').trim()
}
