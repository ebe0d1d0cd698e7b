import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'

/** Pages about the project instead of its use, which stay in the repository. */
const OWN = /^(adr|plots)\/|^(proof|benchmarks.*|sliding-window-accuracy)\.md$/
const OF_SERVICE: readonly string[] = ['service.md', 'resp.md', 'envoy.md', 'replay.md', 'tiers.md', 'monitoring.md']
const OF_BOTH: readonly string[] = ['gate.md']
/** The guides and examples that each package contains. */
const PACKAGES: readonly { readonly folder: string; readonly carries: (file: string) => boolean }[] = [
  { folder: 'packages/sluicegate', carries: (file) => !OWN.test(file) && !OF_SERVICE.includes(file) },
  { folder: 'packages/server', carries: (file) => OF_SERVICE.includes(file) || OF_BOTH.includes(file) },
]

/** Pictures that the pages of both packages show. Plots of measurements stay in the repository with their pages. */
const IMAGES: readonly string[] = readdirSync('docs/images').map((file) => `images/${file}`)

/** Copies into each package the pages that its messages and its README name, so that they are installed with it. */
export function writePackedDocs(): string {
  const counts = PACKAGES.map(({ folder, carries }) => {
    rmSync(`${folder}/docs`, { recursive: true, force: true })
    const files = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((file) => /\.md$/.test(file) && carries(file))
    for (const file of IMAGES) {
      mkdirSync(`${folder}/docs/images`, { recursive: true })
      cpSync(`docs/${file}`, `${folder}/docs/${file}`)
    }
    for (const file of files) {
      const target = `${folder}/docs/${file}`
      mkdirSync(posix.dirname(target), { recursive: true })
      writeFileSync(
        target,
        linksWithin(
          file,
          readFileSync(`docs/${file}`, 'utf8'),
          (page) => files.includes(page) || IMAGES.includes(page),
          folder === 'packages/sluicegate',
        ),
      )
    }
    if (folder === 'packages/sluicegate') copyExamples(`${folder}/docs/examples`)
    else cpSync('examples/grafana', `${folder}/docs/examples/grafana`, { recursive: true })
    return `${folder}/docs: ${files.length} pages`
  })
  return counts.join('\n')
}

function copyExamples(target: string): void {
  mkdirSync(target, { recursive: true })
  for (const file of readdirSync('examples')) if (/\.mjs$/.test(file)) cpSync(`examples/${file}`, `${target}/${file}`)
}

/** The page with links to packed files only; other links become plain text. */
export function linksWithin(file: string, markdown: string, isPacked: (page: string) => boolean, hasExamples = true): string {
  const folder = posix.dirname(file)
  return markdown.replace(/(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (whole, image: string, words: string, target: string) => {
    if (/^([a-z]+:|#)/.test(target)) return whole
    const [path = ''] = target.split('#')
    const example = /^(?:\.\.\/)+examples\/([^/]+\.mjs)$/.exec(path)?.[1]
    if (example !== undefined && hasExamples) return `[${words}](${posix.relative(folder, `examples/${example}`)})`
    if (isPacked(posix.join(folder, path))) return whole
    return image === '!' ? '' : words
  })
}
