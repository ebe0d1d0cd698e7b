import { REPORT_HTML, REPORT_SCRIPT, REPORT_STYLE } from './assets.gen.js'
import type { Report, ReportTable } from './report.js'

/** The report for a terminal: headings, texts and tables. Plots need the HTML form. */
export function textReport({ title, subtitle, sections }: Report): string {
  const parts = [`${title}: ${subtitle}`]
  for (const { heading, text = [], table } of sections) {
    if (text.length === 0 && table === undefined) continue
    parts.push(['', heading, ...text.map((paragraph) => `  ${paragraph}`), ...(table ? tableLines(table) : [])].join('\n'))
  }
  return `${parts.join('\n')}\n`
}

function tableLines({ columns, rows }: ReportTable): string[] {
  const texts = [columns, ...rows].map((row) => row.map((cell) => printable(typeof cell === 'number' ? cell.toLocaleString('en') : cell)))
  const widths = columns.map((_, i) => Math.max(...texts.map((row) => (row[i] ?? '').length)))
  const isNumeric = columns.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number'))
  return texts.map(
    (row) =>
      `  ${row
        .map((cell, i) => (isNumeric[i] ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number)))
        .join('  ')
        .trimEnd()}`,
  )
}

/** Texts of a log may hold control characters, with which a client could write over the terminal. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/**
 * The report as one HTML file that needs no other file, host or server. The page may run its own script alone, and texts of the data are
 * never read as HTML.
 */
export function htmlReport(report: Report): string {
  // In a script element only these characters could end the data or begin a comment.
  const data = JSON.stringify(report).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  const parts: Readonly<Record<string, string>> = {
    title: escapeHtml(report.title),
    style: REPORT_STYLE,
    data,
    script: REPORT_SCRIPT.replaceAll('</script', '<\\/script'),
  }
  return REPORT_HTML.replace(/<!--(\w+)-->/g, (_, part: string) => parts[part] ?? '')
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
