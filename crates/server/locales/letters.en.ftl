### Words of mails to customers and merchants, beside those of the pages. Short sentences, no idioms.
### Every key stands in every letters file of this folder; a test compares them.

## Both
letter-test-subject = TEST: { $subject }
letter-test = This is a test. No real money moves.
letter-hello = Hello { $name },
letter-hello-nobody = Hello,
letter-row = { $name }: { $value }
letter-total = Total
letter-left = Left to pay
letter-refunded = Paid back
letter-pay = Pay this invoice
letter-not-online = This invoice is not paid online. Ask { $merchant } how to pay.
letter-address = Or open this address:
letter-question = Do you have a question? Reply to this mail: it goes to { $merchant }.
letter-automatic = This mail was written by a machine that reads no answers.

## The invoice
letter-invoice-subject = Invoice { $number } from { $merchant }
letter-invoice-lead = { $merchant } sends you invoice { $number }.
letter-invoice-due = To pay by { $day }
letter-invoice-overdue = Was to be paid by { $day }
letter-invoice-settled = Paid. Nothing is left to pay.
letter-invoice-lines = What it is for
letter-invoice-more = { $count ->
    [one] … and { $count } more line.
   *[other] … and { $count } more lines.
}
letter-invoice-before-tax = Before tax
letter-invoice-tax = Tax ({ $rate } %)
letter-invoice-paid = Already paid
letter-invoice-note = A note from { $merchant }
letter-invoice-attached = The invoice is attached as a PDF file.
letter-invoice-unexpected = If you do not know what this is for, do not pay. Ask { $merchant } first.

## The receipt
letter-receipt-subject = Receipt { $number } from { $merchant }
letter-receipt-lead = { $merchant } has received your payment. Thank you.
letter-receipt-number = Receipt
letter-receipt-invoice = For invoice
letter-receipt-method = Paid with
letter-receipt-when = When
letter-receipt-settled = The invoice is paid. Nothing is left to pay.
letter-receipt-attached = The receipt is attached as a PDF file. Keep it as your proof.
letter-method-wave = Wave
letter-method-afrimoney = Afrimoney
letter-method-qmoney = QMoney
letter-method-card = Card
letter-method-cash = Cash
letter-method-bank-transfer = Bank transfer
letter-method-check = Cheque
letter-method-western-union = Western Union
letter-method-other = Another way

## The endpoint that is switched off
letter-endpoint-title = Your webhook endpoint at { $host } is switched off
letter-endpoint-gone = It answered that it is gone (status 410).
letter-endpoint-failing = It has not taken a single event for five days.
letter-endpoint-stopped = No more events are sent to it. Payments go on as before.
letter-endpoint-description = Description
letter-endpoint-when = Switched off
letter-endpoint-next = What to do
letter-endpoint-mend = Let your server answer each event with a status of 200 to 299 within 15 seconds.
letter-endpoint-activate = Then switch the endpoint on again:
letter-endpoint-missed = Then have sent again what it missed:
