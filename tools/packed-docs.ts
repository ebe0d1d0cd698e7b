import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import type { Published } from './published.js'

/** The pages that each package contains: those that its messages and its README name. The site has all. */
const PAGES: Readonly<Record<Published, readonly string[]>> = {
  sluicegate: [
    'quick-start',
    'frameworks',
    'keys',
    'outages',
    'errors',
    'warnings',
    'moving-from-bottleneck',
    'moving-from-rate-limiter-flexible',
  ],
  'sluicegate-server': [
    'service',
    'service-api',
    'service-run',
    'service-security',
    'resp',
    'envoy',
    'replay',
    'tiers',
    'monitoring',
    'gate',
  ],
}

/** Writes them into a folder. */
export function writePackedDocs(name: Published, target: string): void {
  const files = PAGES[name].map((page) => `${page}.md`)
  mkdirSync(target, { recursive: true })
  for (const file of files) {
    writeFileSync(
      `${target}/${file}`,
      linksWithin(file, readFileSync(`docs/${file}`, 'utf8'), (page) => files.includes(page)),
    )
  }
  if (name === 'sluicegate-server') cpSync('examples/grafana', `${target}/examples/grafana`, { recursive: true })
}

/** The page with links to packed files only; other links become plain text, pictures nothing. */
export function linksWithin(file: string, markdown: string, isPacked: (page: string) => boolean): string {
  const folder = posix.dirname(file)
  return markdown.replace(/(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (whole, image: string, words: string, target: string) => {
    if (/^([a-z]+:|#)/.test(target)) return whole
    const [path = ''] = target.split('#')
    if (isPacked(posix.join(folder, path))) return whole
    return image === '!' ? '' : words
  })
}
