// The cost form of the guide: the formula that stands beneath it, with the figures typed in.
(() => {
  const form = document.querySelector(".cost-form");
  if (!form) return;
  const count = new Intl.NumberFormat(form.lang, { maximumFractionDigits: 0 });
  const money = new Intl.NumberFormat(form.lang, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol" });
  const show = () => {
    const given = (name) => Math.max(0, Number(form.elements[name].value) || 0);
    const prices = (name) => ["prompt", "cached", "answer"].map((part) => given(`${name}-${part}`));
    const price = (tokens, cached, answers, [prompt, reused, answer]) =>
      (tokens * ((1 - cached) * prompt + cached * reused) + answers * answer) / 1e6;
    const turns = given("turns");
    const main = turns * given("window") * given("filled") / 100;
    const read = turns * given("calls") * given("tokens");
    const strong = prices("strong");
    const replies = price(main, given("cached-main") / 100, turns * given("reply"), strong);
    const reading = (by) => price(read, given("cached-read") / 100, turns * given("calls") * given("reading"), by);
    const say = (row, tokens, cost) => {
      form.elements[`${row}-tokens`].value = count.format(tokens);
      form.elements[`${row}-cost`].value = money.format(cost);
    };
    say("cheap", main + read, replies + reading(prices("cheap")));
    say("alone", main + read, replies + reading(strong));
    say("search", main, replies);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
