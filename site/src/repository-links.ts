import { relative } from 'node:path'
import { linkFrom } from './page-addresses.js'

/** What is needed here of a token of markdown-it. */
interface Token {
  type: string
  info: string
  content: string
  readonly children: Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

interface State {
  readonly tokens: readonly Token[]
  readonly env: { readonly path?: string; readonly realPath?: string }
}

/** A rule of markdown-it: documents keep links that work in the repository; on the site they lead to pages, or to the repository. */
export function linksOfRepository(root: string, repository: string | undefined): (state: State) => void {
  return ({ tokens, env }) => {
    const path = env.realPath ?? env.path
    // A title by itself.
    if (path === undefined) return
    const file = relative(root, path)
    for (const token of tokens) {
      if (token.children !== null) rewrite(token.children, (target) => linkFrom(file, target, repository))
      // It may be too wide: it is scrolled by keyboard, too.
      if (token.type === 'code_block') token.attrSet('tabindex', '0')
      // Drawn by Git hosts alone, or without colours.
      if (/^(mermaid|promql)$/.test(token.info)) token.info = 'txt'
    }
  }
}

/** A link that leads nowhere becomes its words: links do not nest, so the next end is its own. */
function rewrite(tokens: Token[], leadsTo: (target: string) => string | undefined): void {
  let isOpen = true
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const target = leadsTo(token.attrGet('href') ?? '')
      isOpen = target !== undefined
      if (target !== undefined) token.attrSet('href', target)
    }
    const isEnd = token.type === 'link_close'
    if (!isOpen && (token.type === 'link_open' || isEnd)) Object.assign(token, { type: 'text', content: '' })
    if (isEnd) isOpen = true
  }
}
