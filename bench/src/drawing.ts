import { requireRival } from './rivals.js'

interface Echarts {
  init(dom: null, theme: null, options: object): { setOption(option: object): void; renderToSVGString(): string; dispose(): void }
}

const FONT = 'ui-sans-serif, system-ui, sans-serif'
/** Colours that are swapped for their dark twins where the reader's page is dark. */
const INK = '#3d444d'
export const GRID = '#d0d7de'
const DARK = `@media (prefers-color-scheme: dark) { [fill="${INK}"] { fill: #c9d1d9 } [stroke="${GRID}"] { stroke: #3d444d } [stroke="${INK}"] { stroke: #8b949e } }`

/** Colours of lines, readable on light and on dark pages. */
export const COLORS = ['#2f81f7', '#1b9e8f', '#8b949e', '#d4712a', '#c2437e'] as const

export const TEXT = { color: INK, fontFamily: FONT, fontSize: 12 }
const LINE = { lineStyle: { color: INK } }
export const AXIS = { nameTextStyle: TEXT, axisLabel: TEXT, axisLine: LINE, axisTick: LINE }

/** What the drawing library makes of its options, as SVG without its own background, readable on light and on dark pages. */
export function drawnSvg(title: string, size: { width: number; height: number }, option: object): string {
  const { init } = requireRival('echarts') as Echarts
  const canvas = init(null, null, { renderer: 'svg', ssr: true, ...size })
  canvas.setOption({ animation: false, backgroundColor: 'transparent', ...option })
  const svg = canvas.renderToSVGString()
  canvas.dispose()
  const named = renamed(svg)
  return `${named.replace(/(<svg[^>]*>)/, `$1<title>${title}</title><style>${DARK}</style>`)}\n`
}

/** A title with a line below it. */
export function heading(text: string, subtext: string): object {
  return { text, subtext, left: 8, textStyle: { ...TEXT, fontSize: 15 }, subtextStyle: TEXT }
}

/** The library counts classes and clips over all drawings. Counted from 0 in each, the same figures are the same bytes, whatever else is drawn. */
function renamed(svg: string): string {
  const names = new Map<string, string>()
  return svg.replace(/\bzr\d+-c(?:ls-)?\d+/g, (name) => {
    const known = names.get(name) ?? `c${names.size}`
    names.set(name, known)
    return known
  })
}
