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
