/** The examples: each runs, learns, and prints what its README shows, apart from the numbers. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { read } from '../support/documents.js'
import { KafkaBroker } from '../support/kafka-broker.js'

const FOLDER = 'examples'
const examples = readdirSync(FOLDER, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)

/** What the numbers must be, beyond having the form that the README shows. */
const CHECKS: Readonly<Record<string, (text: string) => void>> = {
  'two-peers': text => assert.ok(Number(/seen: (\d+) %/.exec(text)?.[1]) > 80, text),
  'plug-in': text => {
    assert.ok(Math.abs(Number(/f\(1, 0\) = (\S+),/.exec(text)?.[1]) - 4) < 1, text)
    assert.ok(Math.abs(Number(/f\(0, 1\) = (\S+),/.exec(text)?.[1]) + 1) < 1, text)
    assert.ok(Number(/network: (\S+)/.exec(text)?.[1]) < 1, text)
  },
  kafka: text => assert.ok(Number(/accuracy: (\d+) %/.exec(text)?.[1]) > 80, text),
  mqtt: text => assert.ok(Number(/accuracy: (\d+) %/.exec(text)?.[1]) > 80, text),
  'compare-algorithms': text => {
    const regrets = [...text.matchAll(/regret +(\d+)/g)].map(match => Number(match[1]))
    assert.ok(regrets[0] < regrets[1] && regrets[1] < regrets[2], regrets.join())
  }
}

/** Lines with each number as `#` and single blanks. */
function form(text: string): string[] {
  return text
    .trim()
    .split('\n')
    .map(line => line.replace(/-?\d+(\.\d+)?/g, '#').replace(/ +/g, ' '))
}

describe('the examples', function () {
  this.timeout(120_000)
  let kafka: KafkaBroker
  before(async () => {
    kafka = await KafkaBroker.start()
  })
  after(() => kafka.stop())

  for (const name of examples) {
    it(`${name} prints what its README shows`, async () => {
      const readme = read(`${FOLDER}/${name}/README.md`)
      const [, file] = /```sh\nnode (\S+)\n```/.exec(readme) ?? []
      const [, shown] = /```text\n(.*?)```/s.exec(readme) ?? []
      assert.ok(file !== undefined && shown !== undefined)
      const { stdout } = await promisify(execFile)(process.execPath, [file], {
        timeout: 100_000,
        env: { ...process.env, KAFKA: `127.0.0.1:${kafka.port}` }
      })
      assert.deepEqual(form(stdout), form(shown))
      CHECKS[name](stdout)
    })
  }

  it('are all listed in the README of examples and on the library page', () => {
    for (const page of [`${FOLDER}/README.md`, 'docs/reference/library.md']) {
      assert.deepEqual(
        examples.filter(name => !read(page).includes(`${name}/README.md)`)),
        [],
        page
      )
    }
  })
})
