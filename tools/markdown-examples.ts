import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

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
