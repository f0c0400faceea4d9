/** Steps that were stored by an earlier version. */
import assert from 'node:assert/strict'
import { replaySteps, shapesOf, startingPredictor } from '../../../src/admb/index.js'
import { createAveraging, createRule, digest, latticeRecipe, roundedRecipe } from '../../../src/learner/index.js'

/** Three updates of version 3, which did not round predictors, from the start of 1,200 weights. */
const VERSION_3 = {
  head: 'AxIAAQAAAAEBYQEAAwAq76Py7VmcprET50DBofnDAwEBAAECAgAh6FBbB5XpKByBbb3hB6u5AAEBAAECAQClw7lqh4AyqqtUe5pFAQQmAAEBAAECAP2aSm14QLpLgj+fmc9rQSAAFjeogQ==',
  sums: 'sAkCEMYAAZkRgAUoAX6wCQIQxwABshmQAcZADv6wCQIQxwABxYzIAOMgB3+WtCxV'
}

/** Three updates of version 5, whose grid had other steps. */
const VERSION_5 = {
  head: 'BRIAAQAAAAEBYQEAAAQA7nm1O7KGwJd2pk9XLzdi6gMBAQABAgMAb33cAcIPWiY60jzB+b6XpQABAQABAgIAumpkwc8pXyUQpJlbp6cWMQABAQABAgH9mkpteEC6S4I/n5nPa0EgAKS0qS0=',
  sums: 'sAkCCIQyH94IECBAgQIEf3ggQIECBAgR/eCBAgQIECBH94IECBAgQIEf3ggQIECBAgR/eCBAgQIECBH94IECBAgQIEf3ggQIECBAgR/eCBAgQIECBH94IECBAgQIEf3ggQIECBAgR/eAAAAAALAJAgiFLE/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgc/vAYGBgYGBgYAAAAAAsAkCCIYsgCf34KBQKBQKBQAn9+CgUCgUCgUAJ/fgoFAoFAoFACf34KBQKBQKBQAn9+CgUCgUCgUAJ/fgoFAoFAoFACf34KBQKBQKBQAn9+CgUCgUCgUAJ/fgoFAoFAoFACf34KBQKBQKBQAn9+CgUCgUCgUAAAAAAAD8JDhB'
}

describe('saved steps', () => {
  const layout = { blocks: [{ name: 'w', length: 1200 }] }
  const recipeBy = (decay: number) => {
    const averaging = createAveraging({ name: 'tail', decay })
    return roundedRecipe(
      latticeRecipe({ rule: createRule({ name: 'adagrad' }), averaging, digest }, { batch: 1 }),
      layout
    )
  }
  const replay = (recipe: ReturnType<typeof recipeBy>, stored = VERSION_3) => {
    const saved = { predictor: startingPredictor([new Float32Array(1200)], recipe), lineage: [] }
    const [head, sums] = [stored.head, stored.sums].map(text => new Uint8Array(Buffer.from(text, 'base64')))
    return replaySteps(saved, { head, sums }, shapesOf(layout, recipe), recipe)
  }

  it('of versions whose updates did not round are replayed without rounding', () => {
    const { predictor, lineage } = replay(recipeBy(15))
    assert.deepEqual([predictor.id.updates, predictor.id.digest], [3, '2aefa3f2ed599ca6b113e740c1a1f9c3'])
    assert.equal(lineage.length, 3)
  })

  it('of versions that computed updates differently are refused, with the reason', () => {
    for (const stored of [VERSION_3, VERSION_5]) {
      assert.throws(() => replay(recipeBy(31), stored), {
        code: 'ERR_BAD_FRAME',
        message: /another digest: an earlier version of admb computed updates differently$/
      })
    }
    assert.throws(() => replay(recipeBy(15), VERSION_5), { code: 'ERR_BAD_FRAME' })
  })
})
