import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

/** A block of code as a reader copies it. */
export interface PageBlock {
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
