/** The table of a terminal at powers of two. */
import assert from 'node:assert/strict'
import { ProgressTable } from '../../../src/cli/output/train-report.js'

describe('the progress table', () => {
  it('has a line at each power of two, with the loss since the last line and since the start', () => {
    const lines: string[] = []
    const table = new ProgressTable(line => lines.push(line), ['no', 'yes'])
    let loss = 0
    for (let inputs = 1; inputs <= 9; inputs++) {
      loss += inputs
      table.note({ inputs, averageLoss: loss / inputs, last: { label: inputs % 2, prediction: 0 } })
    }
    const cells = lines.map(line => line.trim().split(/ {2,}/))
    assert.deepEqual(cells, [
      ['inputs', 'since last', 'since start', 'label', 'prediction'],
      ['1', '1.00000', '1.00000', 'yes', 'no'],
      ['2', '2.00000', '1.50000', 'no', 'no'],
      ['4', '3.50000', '2.50000', 'no', 'no'],
      ['8', '6.50000', '4.50000', 'no', 'no']
    ])
    assert.equal(table.left, 7)
  })

  it('has one line for inputs that pass several powers of two at once, and dashes for unknown outcomes', () => {
    const lines: string[] = []
    const table = new ProgressTable(line => lines.push(line))
    table.note({ inputs: 32, averageLoss: 0.5, last: undefined })
    assert.equal(lines.length, 2)
    assert.match(lines[1], /32 +0\.50000 +0\.50000 +– +–$/)
    assert.equal(table.left, 32)
  })
})
