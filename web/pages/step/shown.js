// Whether a picture is what the page says it shows. Until the answer to another question is there it is
// dimmed, and cannot be saved; if that question fails, it goes.

export class Shown {
  // `saves`: buttons.
  constructor(figure, saves) {
    this.figure = figure;
    this.saves = saves;
    this.drawn = null;  // the question whose answer is drawn; null: nothing is
    this.mark();
  }

  ask(parameters) {
    this.parameters = parameters;
    this.asked = JSON.stringify(parameters);
    this.mark();
  }

  // The answer to what was asked last is drawn, or nothing any more.
  draw(something = true) {
    this.drawn = something ? this.asked : null;
    this.mark();
  }

  get same() { return this.drawn !== null && this.drawn === this.asked; }

  mark() {
    this.figure.setAttribute('aria-busy', String(this.drawn !== null && !this.same));
    for (const button of this.saves) button.disabled = !this.same;
  }
}
