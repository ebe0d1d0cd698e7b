import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { manualClock } from 'sluicegate'
import { openPage } from '../testing/browser.js'
import { runService } from '../testing/running-service.js'

interface Label {
  readonly text: string
  /** Where it ends, in points of the screen. */
  readonly right: number
  readonly canvasWidth: number
}

/** All labels that charts draw from now on, until there are some of both axes. */
const LABELS = `new Promise((resolve) => {
  const labels = []
  const { fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const width = this.measureText(text).width
    const right = x + (this.textAlign === 'center' ? width / 2 : this.textAlign === 'right' ? 0 : width)
    if (this.canvas.closest('.policy')) labels.push({ text, right, canvasWidth: this.canvas.width })
    fillText.call(this, text, x, y)
    if (labels.length > 40) resolve(labels)
  }
})`

/** The labels at 360 pixels, where the service's clock stands at that time. */
async function labelsAt(t: TestContext, time: string): Promise<Label[]> {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(time) })
  const { url } = await runService(t, undefined, { sampleMs: 50, clock: manualClock(0) })
  const { page } = await openPage(t, url, { viewport: { width: 360, height: 800 }, timezoneId: 'UTC', locale: 'en-US' })
  return page.evaluate(LABELS)
}

test('the labels of the axis of an idle policy are quarters, as its lines are', async (t) => {
  const labels = await labelsAt(t, '2026-01-01T12:00:30Z')
  const amounts = new Set(labels.map(({ text }) => text).filter((text) => !text.includes(':')))
  assert.deepEqual([...amounts], ['0', '0.25', '0.5', '0.75', '1'])
})

test('the last label of time is whole, however near to the edge, and midnight is 00:00:00', async (t) => {
  const labels = (await labelsAt(t, '2026-01-01T00:00:01Z')).filter(({ text }) => text.includes(':'))
  assert.deepEqual([...new Set(labels.map(({ text }) => text))], ['23:59:00', '00:00:00'])
  for (const { text, right, canvasWidth } of labels) assert.ok(right <= canvasWidth, `${text} ends at ${right} of ${canvasWidth}`)
})
