import type { Report, ReportTable } from '../report.js'
import { drawPlot } from './plot.js'

const report = JSON.parse(document.getElementById('report')?.textContent ?? '') as Report
const main = document.querySelector('main') as HTMLElement

append(main, 'h1', report.title)
append(main, 'p', report.subtitle)
for (const { heading, text = [], table, plot } of report.sections) {
  const section = append(main, 'section')
  append(section, 'h2', heading)
  for (const paragraph of text) append(section, 'p', paragraph)
  if (plot !== undefined) drawPlot(append(section, 'div'), heading, plot)
  if (table !== undefined) drawTable(append(section, 'div'), table)
}

function drawTable(place: HTMLElement, { columns, rows }: ReportTable): void {
  place.className = 'scroll'
  // A wide table is scrolled with the keyboard too.
  place.tabIndex = 0
  const table = append(place, 'table')
  const head = append(append(table, 'thead'), 'tr')
  columns.forEach((column, i) => {
    append(head, 'th', column).className = rows.every((row) => typeof row[i] === 'number') && rows.length > 0 ? 'number' : ''
  })
  const body = append(table, 'tbody')
  for (const row of rows) {
    const line = append(body, 'tr')
    for (const cell of row) {
      const isNumber = typeof cell === 'number'
      append(line, 'td', isNumber ? cell.toLocaleString() : cell).className = isNumber ? 'number' : ''
    }
  }
}

function append(parent: HTMLElement, name: string, text = ''): HTMLElement {
  const element = document.createElement(name)
  element.textContent = text
  parent.append(element)
  return element
}
