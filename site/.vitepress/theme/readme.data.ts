import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createMarkdownRenderer } from 'vitepress'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** What the first page shows of the README: its first program, and its comparison. */
export interface Readme {
  readonly program: string
  /** A row of "How it compares", as HTML. */
  readonly figures: readonly { readonly name: string; readonly result: string }[]
  readonly machine: string
}

declare const data: Readme

export { data }

export default {
  watch: ['../../../README.md'],
  async load(): Promise<Readme> {
    const text = readFileSync(`${ROOT}README.md`, 'utf8')
    const markdown = await createMarkdownRenderer(ROOT, { html: false })
    const program = /## Copy this\n\n(?:[^\n`]+.*\n\n)?(```ts\n[\s\S]*?\n```)/.exec(text)?.[1]
    const section = /## How it compares\n\n(.*)\n\n([\s\S]*?)\n\n/.exec(text)
    if (program === undefined || section === null) throw new Error('README.md has no "Copy this" or no "How it compares"')
    const [, machine = '', table = ''] = section
    const rows = table
      .split('\n')
      .slice(2)
      .map((row) => row.split('|').map((cell) => cell.trim()))
    const plain = (cell = '') => markdown.renderInline(cell.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'))
    return {
      program: markdown.render(program),
      machine,
      figures: rows.map(([, name, result]) => ({ name: plain(name), result: plain(result) })),
    }
  },
}
