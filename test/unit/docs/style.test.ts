/**
 * The style of the documents: words, width, and how many long sentences a page may have. The counts of `style.json` may only
 * fall; `ADMB_RECORD=1` records lower ones.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { pages, paragraphs, prose, read, sentences } from '../../support/documents.js'

const BASELINE = 'test/unit/docs/style.json'
/** Messages of one failure. */
const SHOWN = 5
const WIDTH = 100

/** Words that the documents do not use, and what to write instead. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\balso if\b/i, 'even if'],
  [/\bthe own\b/i, 'its own, or their own'],
  [/\bas of (?!\d)/i, 'in, or from'],
  [/\b(goes|go) on\b/i, 'continues, or keeps learning'],
  [/^Who (?!\w+ (can|may)\b.*\?)/, 'whoever, or a peer that'],
  [/^(That of|Those of|Of|Which) [^?]*$/, 'a full sentence with a subject'],
  [/^What [^?]*? (is|are) (a|an|the) [^?]*$/, 'the subject first, instead of a cleft'],
  [/\[figures\]\(/, '[results](…)'],
  [/\b(leverage|utilize|seamless|robustly)\b/i, 'a plain word']
]

/** Largest number of lines of a page, by folder. */
const BUDGETS: readonly (readonly [RegExp, number])[] = [
  [/^README\.md$/, 60],
  [/^docs\/(guides|tutorials)\//, 180],
  [/^docs\/explanation\//, 150]
]

/** Counts of a page that may only fall. */
interface Counts {
  /** Sentences of more than 30 words. */
  readonly long: number
  /** Sentences with more than three numbers. */
  readonly numeric: number
  /** Paragraphs of more than 120 words. */
  readonly paragraphs: number
  /** Lines wider than the limit that are no tables. */
  readonly wide: number
  /** Lines beyond the page's budget. */
  readonly lines: number
}

const wordsOf = (text: string) => text.split(' ').length

function countsOf(page: string): Counts {
  const all = sentences(page)
  const budget = BUDGETS.find(([pattern]) => pattern.test(page))?.[1] ?? Number.POSITIVE_INFINITY
  const wide = prose(page).split('\n')
  return {
    long: all.filter(text => wordsOf(text) > 30).length,
    numeric: all.filter(text => (text.match(/(?<![\w.])\d[\d.,]*/g) ?? []).length > 3).length,
    paragraphs: paragraphs(page).filter(text => wordsOf(text) > 120).length,
    wide: wide.filter(line => line.length > WIDTH && !/^ *(\||<|!\[)|\]\([^)]*$|\S{60}/.test(line)).length,
    lines: Math.max(
      0,
      read(page)
        .trimEnd()
        .split('\n')
        .filter(line => !line.trimStart().startsWith('<!--')).length - budget
    )
  }
}

const generated = /^docs\/reference\/(options|status|combinations)\.md$/
const checked = pages().filter(page => !generated.test(page) && page !== 'CHANGELOG.md')

function check(faults: readonly string[]): void {
  const more = faults.length > SHOWN ? [`and ${faults.length - SHOWN} more`] : []
  assert.deepEqual([...faults.slice(0, SHOWN), ...more], [])
}

describe('the style of the documents', () => {
  it('avoids words that have a plainer one', () => {
    check(
      checked.flatMap(page =>
        sentences(page).flatMap(text =>
          WORDS.filter(([word]) => word.test(text)).map(([, better]) => `${page}: ${better}: ${text.slice(0, 90)}`)
        )
      )
    )
  })

  it('does not become longer', () => {
    const before = JSON.parse(readFileSync(BASELINE, 'utf8')) as Record<string, Partial<Counts>>
    const now = Object.fromEntries(checked.map(page => [page, countsOf(page)]))
    const limit = (page: string, count: string) => before[page]?.[count as keyof Counts] ?? 0
    if (process.env.ADMB_RECORD !== undefined) {
      const lines = Object.entries(now)
        .map(([page, counts]) => {
          const kept = Object.entries(counts).map(
            ([name, count]) => [name, Math.min(count, limit(page, name))] as const
          )
          const shown = kept.filter(([, count]) => count > 0).map(([name, count]) => `"${name}": ${count}`)
          return shown.length > 0 ? `  "${page}": { ${shown.join(', ')} }` : ''
        })
        .filter(line => line !== '')
      writeFileSync(BASELINE, `{\n${lines.join(',\n')}\n}\n`)
    }
    check(
      Object.entries(now).flatMap(([page, counts]) =>
        Object.entries(counts)
          .filter(([name, count]) => count > limit(page, name))
          .map(([name, count]) => `${page}: ${name}: ${count}, of at most ${limit(page, name)}`)
      )
    )
  })
})
