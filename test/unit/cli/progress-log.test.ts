/** The progressive log: sums over runs, restarts and files, and damaged files. */
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ProgressLog, readProgress } from '../../../src/cli/output/progress-log.js'
import { scratchFolder } from '../../support/scratch.js'

describe('a progressive log', () => {
  const dir = scratchFolder()
  const at = (name: string) => join(dir, name)
  const write = (name: string, run: string, ...sums: { inputs: number; loss: number; hits?: number }[]) => {
    const log = new ProgressLog(at(name))
    for (const entry of sums.slice(0, -1)) log.note({ run, ...entry })
    log.end({ run, ...sums[sums.length - 1] })
  }

  it('adds up the last lines of all runs, in all files', () => {
    write('a', 'one', { inputs: 10, loss: 9, hits: 4 }, { inputs: 200, loss: 100, hits: 150 })
    write('a', 'two', { inputs: 50, loss: 20, hits: 30 })
    write('b', 'three', { inputs: 7, loss: 1.5, hits: 6 })
    assert.deepEqual(readProgress([at('a'), at('b')]), { inputs: 257, loss: 121.5, hits: 186 })
    assert.deepEqual(readProgress([at('a'), at('a')]), { inputs: 250, loss: 120, hits: 180 })
  })

  it('continues from the checkpoint of a restarted peer', () => {
    write('restart', 'peer', { inputs: 1000, loss: 500 })
    write('restart', 'peer', { inputs: 900, loss: 460 }, { inputs: 1200, loss: 590 })
    assert.deepEqual(readProgress([at('restart')]), { inputs: 1200, loss: 590, hits: undefined })
    write('fallen back', 'peer', { inputs: 1000, loss: 500 })
    write('fallen back', 'peer', { inputs: 900, loss: 460 })
    assert.equal(readProgress([at('fallen back')]).inputs, 900)
  })

  it('has few lines for many inputs', () => {
    const log = new ProgressLog(at('many'))
    for (let inputs = 1; inputs < 100_000; inputs++) log.note({ run: 'x', inputs, loss: inputs })
    log.end({ run: 'x', inputs: 100_000, loss: 100_000 })
    const lines = readFileSync(at('many'), 'utf8').trimEnd().split('\n').length
    assert.ok(lines > 100 && lines < 2000, `${lines} lines`)
    assert.equal(readProgress([at('many')]).inputs, 100_000)
  })

  it('drops a line that a crash truncated, and appends after the others', () => {
    write('torn', 'x', { inputs: 5, loss: 3 })
    appendFileSync(at('torn'), '{"run":"x","inputs":6,"lo')
    assert.equal(readProgress([at('torn')]).inputs, 5)
    write('torn', 'x', { inputs: 8, loss: 4 })
    assert.equal(readFileSync(at('torn'), 'utf8').trimEnd().split('\n').length, 2)
    assert.equal(readProgress([at('torn')]).inputs, 8)
  })

  it('does not overwrite or read a file of another kind', () => {
    writeFileSync(at('data.csv'), 'a,b\n1,2')
    assert.throws(() => new ProgressLog(at('data.csv')), /data\.csv: the file is not a progress log.*another name/)
    assert.equal(readFileSync(at('data.csv'), 'utf8'), 'a,b\n1,2')
    assert.throws(() => readProgress([at('data.csv')]), /data\.csv:1: not a line of a progress log/)
    write('odd', 'x', { inputs: 5, loss: 3 })
    appendFileSync(at('odd'), '{"run":"x","inputs":-1,"loss":2}\n')
    assert.throws(() => readProgress([at('odd')]), /odd:2: /)
    assert.throws(() => readProgress([at('none')]), /cannot read .*none \(ENOENT\)/)
    assert.throws(() => new ProgressLog(at('no/folder')), /cannot be opened \(ENOENT/)
  })
})
