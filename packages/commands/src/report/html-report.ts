import { REPORT_HTML, REPORT_SCRIPT, REPORT_STYLE } from './assets.gen.js'
import type { Report } from './report.js'

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
