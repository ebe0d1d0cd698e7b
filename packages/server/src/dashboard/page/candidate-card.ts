import type { CandidateSample, DiffSample, RankedKey } from '../sample.js'
import { byId, count, made, rate } from './figures.js'

/** Where the candidate differs from the configuration in force. */
export function showCandidate(candidate: CandidateSample | undefined): void {
  byId('candidate').hidden = candidate === undefined
  if (candidate === undefined) return
  const { sinceS, isFaulty, faults, policies, notCompared } = candidate
  const note = byId('candidate-fault')
  note.hidden = !isFaulty
  note.textContent = isFaulty ? `The files of the candidate have faults. ${faults ?? 'See the log.'}` : ''
  byId('candidate-since').textContent = `Compared since ${new Date(sinceS * 1000).toLocaleTimeString()}; no answer is affected`
  byId('candidate-policies').replaceChildren(...policies.map(row))
  byId('candidate-rest').textContent = notCompared.map(({ name, reason }) => `${name}: ${reason}`).join(' · ')
}

function row({ name, same, wouldDeny, wouldAllow, failed, deniedKeys, allowedKeys }: DiffSample): HTMLElement {
  const total = Math.max(1, same + wouldDeny + wouldAllow)
  const bar = made('div', 'split')
  for (const [kind, value] of Object.entries({ same, deny: wouldDeny, allow: wouldAllow })) {
    const piece = made('i', kind)
    piece.style.setProperty('--share', `${(100 * value) / total}%`)
    bar.append(piece)
  }
  const figures = made(
    'dl',
    'split-figures',
    figure('same', 'Same', same, total),
    figure('deny', 'Would be denied', wouldDeny, total),
    figure('allow', 'Would be allowed', wouldAllow, total),
  )
  if (failed > 0) figures.append(figure('', 'Not decided', failed, undefined))
  const lists = made('div', 'chips')
  lists.append(...chips('Would be denied', 'deny', deniedKeys), ...chips('Would be allowed', 'allow', allowedKeys))
  return made('li', 'diff', made('h3', '', name), bar, figures, lists)
}

function figure(kind: string, label: string, value: number, total: number | undefined): HTMLElement {
  const share = total === undefined ? '' : ` (${rate((100 * value) / total)}%)`
  const term = made('dt', '', made('i', `dot ${kind}`), label)
  const amount = made('dd', '', count(value), made('small', '', share))
  amount.dataset.diff = kind
  return made('div', '', term, amount)
}

function chips(label: string, kind: string, keys: readonly RankedKey[]): HTMLElement[] {
  return keys.map(({ key, count: times }) => {
    const chip = made('span', `chip ${kind}`, made('bdi', '', key), made('b', '', count(times)))
    chip.title = `${label}: ${key}`
    return chip
  })
}
