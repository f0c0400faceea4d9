/** The location of tests: a file is under `test/property` exactly if it draws its inputs. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'

/** The fuzzer draws scenarios and fault schedules without fast-check's runner, also to find mutants. */
const DRAWS = /^import .* from 'fast-check'|\bfuzz\w*\(|^describeMutants\(/m

function testsUnder(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(file => `${folder}/${file}`)
  return files.filter(file => file.endsWith('.test.ts'))
}

const draws = (file: string) => DRAWS.test(readFileSync(file, 'utf8'))

describe('tests that draw inputs', () => {
  it('are all under test/property', () => {
    const elsewhere = ['test/unit', 'test/integration', 'test/e2e', 'test/data'].flatMap(testsUnder)
    assert.ok(elsewhere.length > 100)
    assert.deepEqual(
      elsewhere.filter(file => draws(file)),
      []
    )
  })

  it('are the only tests there', () => {
    assert.deepEqual(
      testsUnder('test/property').filter(file => !draws(file)),
      []
    )
  })
})
