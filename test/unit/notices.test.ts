/** Notices: the most important ones are shown, each once. */
import assert from 'node:assert/strict'
import { importance, Notices } from '../../src/base/errors.js'

describe('notices', () => {
  it('are shown by importance, at most five, each once', () => {
    const shown: string[] = []
    const notices = new Notices(line => shown.push(line))
    for (const i of [1, 2, 3, 4]) notices.add(`guess ${i}`, importance.guess)
    notices.add('guess 1', importance.guess)
    notices.add('a column is left out', importance.leftOut)
    notices.show()
    assert.deepEqual(shown, ['a column is left out', 'guess 1', 'guess 2', 'guess 3', 'guess 4'])
    notices.show()
    assert.equal(shown.length, 5)
    assert.deepEqual(notices.lines, shown)
  })

  it('that arrive late count with those that were shown', () => {
    const shown: string[] = []
    const notices = new Notices(line => shown.push(line))
    for (const i of [1, 2, 3]) notices.add(`guess ${i}`, importance.guess)
    notices.show()
    for (const i of [1, 2, 3]) notices.add(`late ${i}`, importance.contradiction)
    notices.show()
    assert.deepEqual(shown, ['guess 1', 'guess 2', 'guess 3', 'late 1', 'late 2'])
    assert.deepEqual(notices.lines, ['late 1', 'late 2', 'late 3', 'guess 1', 'guess 2'])
  })

  it('of events are shown at once and not counted', () => {
    const shown: string[] = []
    const notices = new Notices(line => shown.push(line))
    notices.add('a file was rotated')
    assert.deepEqual(shown, ['a file was rotated'])
    assert.deepEqual(notices.lines, [])
  })
})
