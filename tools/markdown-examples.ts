import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'

/** A block of code in a document that is marked to run. */
export interface Example {
  readonly file: string
  /** Where its first line of code stands. */
  readonly line: number
  readonly code: string
  /** Its expected output, when a block `text` follows directly. */
  readonly prints?: string
}

const FENCE = /^```(\w*) ?(.*)$/

/** The blocks that begin with "```ts run", each with the block "```text" right after it, if there is one. */
export function examplesIn(file: string, markdown: string): Example[] {
  const blocks = blocksIn(markdown)
  return blocks.flatMap((block, index) => {
    if (block.language !== 'ts' || block.note !== 'run') return []
    const next = blocks[index + 1]
    const prints = next?.language === 'text' && next.line - block.end <= 3 ? { prints: next.code } : {}
    return [{ file, line: block.line, code: block.code, ...prints }]
  })
}

interface Block {
  readonly language: string
  readonly note: string
  /** Numbers of the first line of code and of the closing fence, from 1. */
  readonly line: number
  readonly end: number
  readonly code: string
}

function blocksIn(markdown: string): Block[] {
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  for (let open = 0; open < lines.length; open++) {
    const [, language, note] = lines[open]?.match(FENCE) ?? []
    if (language === undefined || note === undefined) continue
    const length = lines.slice(open + 1).indexOf('```')
    if (length < 0) break
    const code = lines.slice(open + 1, open + 1 + length)
    blocks.push({ language, note, line: open + 2, end: open + length + 2, code: `${code.join('\n')}\n` })
    open += length + 1
  }
  return blocks
}

/** A block of code as a reader copies it. */
interface PageBlock {
  readonly language: 'js' | 'ts'
  readonly code: string
}

/** The blocks of JavaScript and TypeScript of a page, in their order. */
export function blocksOf(page: string): PageBlock[] {
  return [...readFileSync(page, 'utf8').matchAll(/\n```(js|ts)(?: run)?\n(.*?\n)```\n/gs)].map(([, language, code = '']) => ({
    language: language as 'js' | 'ts',
    code,
  }))
}

/** The block of the quick start below a line that begins with these bold words. */
export function quickStartBlock(words: string): PageBlock {
  const [, rest] = readFileSync('docs/quick-start.md', 'utf8').split(`\n**${words}`)
  const [, language, code = ''] = rest?.match(/\n```(js|ts)\n(.*?\n)```\n/s) ?? []
  assert.ok(language, `docs/quick-start.md has no block for ${words}`)
  return { language: language as 'js' | 'ts', code }
}

/** 100 requests pass, besides one for each 600 ms that the requests take, and the next one receives 429 and Retry-After. */
export async function assertLimited(ask: () => Promise<Response>): Promise<void> {
  const startedMs = performance.now()
  for (let passed = 0; ; passed++) {
    const { status, headers } = await ask()
    const refilled = (performance.now() - startedMs) / 600
    if (status === 200) {
      assert.ok(headers.has('ratelimit'))
      assert.ok(passed < 100 + refilled, `${passed + 1} requests passed`)
    } else {
      assert.deepEqual([status, passed >= 100, Number(headers.get('retry-after')) >= 1], [429, true, true])
      return
    }
  }
}

/** Links of a document to files of the repository, as paths from its root; links to the web and within the document left out. */
export function linkedFiles(file: string, markdown: string): string[] {
  const targets = [...proseOf(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target?.replace(/#.*$/, '') ?? '')
  return targets.filter((target) => target !== '' && !/^[a-z]+:/.test(target)).map((target) => posix.join(posix.dirname(file), target))
}

/** Links of a document to headings, in itself or in another document of the repository. */
export function linkedHeadings(file: string, markdown: string): { readonly target: string; readonly anchor: string }[] {
  const links = [...proseOf(markdown).matchAll(/\]\(([^)\s#]*)#([^)\s]+)\)/g)].map(([, path = '', anchor = '']) => ({ path, anchor }))
  const local = links.filter(({ path }) => !/^[a-z]+:/.test(path) && (path === '' || path.endsWith('.md')))
  return local.map(({ path, anchor }) => ({ target: path === '' ? file : posix.join(posix.dirname(file), path), anchor }))
}

/**
 * The anchors of a document's headings by GitHub's rules: lower case, only letters, digits, `_` and `-`, one hyphen for each space; the
 * second of two equal ones ends in `-1`, and so on. Explicit `<a id="...">` count too.
 */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  const prose = markdown.replace(/^```.*?^```$/gms, '')
  for (const [, heading = ''] of prose.matchAll(/^#{1,6} +(.*?)(?: +#+)? *$/gm)) {
    const slug = slugOf(heading)
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  for (const [, id = ''] of prose.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id)
  return anchors
}

function slugOf(heading: string): string {
  const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[a-z/][^>]*>/g, '')
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Without code, in which nothing is a link. */
function proseOf(markdown: string): string {
  return markdown.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '')
}
